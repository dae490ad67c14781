/**
 * Counts the limits of accounts over several routers in a store. Each router always keeps its own count too. A request
 * refused by the router's own count is refused without asking the store, and while the store does not answer, the own
 * count decides alone. So accounts keep their limits, also if the store is gone or loses its data.
 */
import { sleep, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import { asId, type AccountId, type RequestId } from "@weiche/shared/ids.ts";
import { leaseMs } from "./limit-scripts.ts";
import type { LimitStore, StoreDecision } from "./limit-store.ts";
import type { AccountLimits, LimitDecision, Limiter, LimitJudgement, LimitUse } from "./limiter.ts";
import type { MemoryLimiter } from "./memory-limiter.ts";
import { toldMsMax } from "./told-times.ts";

/**
 * How long a request waits for the store. The router decides on this request, and on all later ones until the store is
 * back, by its own count.
 */
const answerMsMax = 100;
/**
 * After this time the store is asked once more about a refusal by the parallel limit. A client may send its next request
 * as soon as another router ends its answer, before the store knows that the place is free.
 */
const againMs = 10;
/** How long the store is not asked for a retry time of an account after it had none left. */
const noTimeMs = 1_000;
/** The period of lease renewals. */
const renewMs = 5_000;
/** The period at which a router that decides alone tries the store. */
const lookMs = 500;
/** The number of accounts whose leases are renewed at once. Requests in between do not wait for all accounts. */
const accountsAtOnce = 50;
/** The timeout for renewing the leases of these accounts. */
const renewMsMax = 1_000;
/** How long a start waits for the store, and the pause between its tries. */
const startMsMax = 1_000;
const lookAtStartMs = 20;
/** Not an account. A router renews it without requests to check that the store accepts writes. */
const ownAccount = asId<AccountId>("router");

export interface SharedLimiterEvents {
  limitStoreLost(reason: string): void;
  limitStoreBack(aloneMs: number): void;
  /** This router decided on a request by its own count. */
  limitDecidedAlone(): void;
  limitStoreAnswered(durationMs: number): void;
}

interface SharedLimiterParts {
  readonly store: LimitStore;
  /** Counts the requests admitted by this router, also if the store decides. */
  readonly own: MemoryLimiter;
  readonly clock: Clock;
  readonly events: SharedLimiterEvents;
  /** The limits while the store does not answer: the account's full limits, or this router's share of them. */
  readonly whenDown: "full" | "share";
  /** Returns how many routers share the limits, including this one. */
  readonly routers: () => number;
}

interface Alone {
  readonly sinceMs: number;
  readonly reason: string;
  /** Whether `limitStoreLost` was called for it. */
  readonly isTold: boolean;
}

interface Refusal {
  readonly untilMs: number;
  readonly perMinute: number;
}

interface Held {
  /** True for a request that holds a place, false while it asks the store for one. */
  readonly live: Map<RequestId, boolean>;
  /** When a request last gave its place back. After a failover the store may have missed this and count the lease. */
  leftAtMs: number;
}

type Refused = readonly [account: AccountId, request: RequestId, limits: AccountLimits, isRetry: boolean];

export class SharedLimiter implements Limiter, AsyncDisposable {
  readonly #parts: SharedLimiterParts;
  readonly #held = new Map<AccountId, Held>();
  /** Refusals by the minute. Each is valid until its time. */
  readonly #refusals = new Map<AccountId, Refusal>();
  /** Until when the store is not asked for a retry time of the account. */
  readonly #noTimeUntilMs = new Map<AccountId, number>();
  /** The last pending question for a retry time of the account. No such promise rejects. */
  readonly #telling = new Map<AccountId, Promise<number>>();
  /** Undefined while the store decides. */
  #alone: Alone | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  private constructor(parts: SharedLimiterParts) {
    this.#parts = parts;
    this.#alone = { sinceMs: parts.clock.monotonicMs(), reason: "it has not answered yet", isTold: false };
  }

  /** Resolves when the store answers, or after a second without an answer. */
  static async open(parts: SharedLimiterParts): Promise<SharedLimiter> {
    const limiter = new SharedLimiter(parts);
    const untilMs = parts.clock.monotonicMs() + startMsMax;
    await limiter.#look();
    while (limiter.#alone && parts.clock.monotonicMs() < untilMs) {
      await sleep(parts.clock, lookAtStartMs);
      await limiter.#look();
    }
    if (limiter.#alone) limiter.#tellLost(limiter.#alone);
    parts.store.onLost((why) => limiter.#lose(why));
    limiter.#again();
    return limiter;
  }

  /** Since when (monotonic time) and why this router decides alone. Undefined while the store decides. */
  get alone(): Alone | undefined {
    return this.#alone;
  }

  async enter(account: AccountId, request: RequestId, limits: AccountLimits, isRetry = false): Promise<LimitDecision> {
    const judgement = await this.#judge(account, request, limits);
    if (judgement.admitted) return judgement;
    const retryAfterMs = await this.#tell(account, request, limits, isRetry);
    return { admitted: false, limit: judgement.limit, retryAfterMs };
  }

  async #judge(account: AccountId, request: RequestId, limits: AccountLimits): Promise<LimitJudgement> {
    const known = this.#knownRefusal(account, request, limits);
    if (known) return known;
    const decision = await this.#decide(account, request, limits);
    if (decision.admitted || decision.limit === "minute" || this.#alone) return decision;
    await sleep(this.#parts.clock, againMs);
    return this.#knownRefusal(account, request, limits) ?? (await this.#decide(account, request, limits));
  }

  /**
   * Returns after how many ms a refused request would be admitted. The refused requests of an account ask the store in
   * turn, because hundreds at once would slow the store down. If no time is left, the next ones do not ask.
   */
  #tell(...asked: Refused): Promise<number> {
    const [account] = asked;
    const before = this.#telling.get(account) ?? Promise.resolve(0);
    const told = before.then(() => this.#askWhatToTell(...asked));
    this.#telling.set(account, told);
    void told.then(() => this.#telling.get(account) === told && this.#telling.delete(account));
    return told;
  }

  async #askWhatToTell(...[account, request, limits, isRetry]: Refused): Promise<number> {
    const { own, store, clock } = this.#parts;
    if (this.#alone) return own.tell(account, limits, isRetry);
    if ((this.#noTimeUntilMs.get(account) ?? -Infinity) > clock.monotonicMs()) return toldMsMax;
    try {
      const known = { durationsMs: own.durationsOf(account), isRetry };
      const told = await this.#answered(store.tell(account, request, limits, known));
      if (told === undefined) this.#noTimeUntilMs.set(account, clock.monotonicMs() + noTimeMs);
      return told ?? toldMsMax;
    } catch (error) {
      this.#lose(error as Error);
      return own.tell(account, limits, isRetry);
    }
  }

  async #decide(account: AccountId, request: RequestId, limits: AccountLimits): Promise<LimitJudgement> {
    const { own, store, clock, events } = this.#parts;
    this.#heldOf(account).live.set(request, false);
    if (this.#alone) return this.#decideAlone(account, request, limits);
    const askedAtMs = clock.monotonicMs();
    let decision: StoreDecision;
    try {
      decision = await this.#answered(store.enter(account, request, limits));
    } catch (error) {
      this.#lose(error as Error);
      return this.#decideAlone(account, request, limits);
    }
    events.limitStoreAnswered(clock.monotonicMs() - askedAtMs);
    if (!decision.admitted) {
      this.#release(account, request);
      if (decision.limit === "parallel") return decision;
      const untilMs = clock.monotonicMs() + decision.freeInMs;
      this.#refusals.set(account, { untilMs, perMinute: limits.perMinute });
      return decision;
    }
    // This router may have admitted other requests while it waited for the store. A store that lost its data does not count them.
    const again = own.judge(account, request, limits);
    if (again.admitted) this.#hold(account, request, askedAtMs);
    else this.leave(account, request);
    return again;
  }

  leave(account: AccountId, request: RequestId): void {
    this.#parts.own.leave(account, request);
    if (!this.#release(account, request) || this.#alone) return;
    this.#parts.store.leave(account, request).catch((error: Error) => this.#lose(error));
  }

  async use(account: AccountId): Promise<LimitUse> {
    const { own, store } = this.#parts;
    if (this.#alone) return own.use(account);
    return await this.#answered(store.use(account)).catch((error: Error) => {
      this.#lose(error);
      return own.use(account);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#parts.store[Symbol.asyncDispose]();
  }

  /** Refuses by this router's own count or an earlier answer of the store. Returns undefined if the store must decide. */
  #knownRefusal(account: AccountId, request: RequestId, limits: AccountLimits): LimitJudgement | undefined {
    const { own, clock } = this.#parts;
    const decision = own.judge(account, request, limits);
    if (!decision.admitted) return decision;
    const refusal = this.#refusals.get(account);
    if (refusal?.perMinute !== limits.perMinute) return undefined;
    return refusal.untilMs > clock.monotonicMs() ? { admitted: false, limit: "minute" } : undefined;
  }

  #decideAlone(account: AccountId, request: RequestId, { perMinute, parallel }: AccountLimits): LimitJudgement {
    const { own, clock, events, whenDown, routers } = this.#parts;
    const parts = whenDown === "share" ? routers() : 1;
    const shareOf = (limit: number) => Math.max(1, Math.floor(limit / parts));
    const decision = own.judge(account, request, { perMinute: shareOf(perMinute), parallel: shareOf(parallel) });
    if (decision.admitted) this.#hold(account, request, clock.monotonicMs());
    else this.#release(account, request);
    events.limitDecidedAlone();
    return decision;
  }

  #hold(account: AccountId, request: RequestId, atMs: number): void {
    this.#heldOf(account).live.set(request, true);
    this.#parts.own.count(account, request, atMs);
  }

  #heldOf(account: AccountId): Held {
    return this.#held.getOrInsertComputed(account, () => ({ live: new Map(), leftAtMs: 0 }));
  }

  /** Returns whether the request was held. */
  #release(account: AccountId, request: RequestId): boolean {
    const held = this.#held.get(account);
    if (!held?.live.delete(request)) return false;
    held.leftAtMs = this.#parts.clock.monotonicMs();
    return true;
  }

  /** Rejects if the answer takes too long. */
  async #answered<T>(answer: Promise<T>, msMax = answerMsMax): Promise<T> {
    const late = Promise.withResolvers<never>();
    const deadline = this.#parts.clock.after(msMax, () => {
      // If the event loop was blocked, the answer may have arrived already. This lets the process read it first.
      setImmediate(() => late.reject(new Error(`it took longer than ${msMax} ms`)));
    });
    try {
      return await Promise.race([answer, late.promise]);
    } finally {
      deadline.cancel();
    }
  }

  #lose({ message: reason }: Error): void {
    if (this.#alone || this.#isClosed) return;
    this.#alone = { sinceMs: this.#parts.clock.monotonicMs(), reason, isTold: false };
    this.#tellLost(this.#alone);
    this.#again();
  }

  #tellLost(alone: Alone): void {
    this.#alone = { ...alone, isTold: true };
    this.#parts.events.limitStoreLost(alone.reason);
  }

  /** Tries the store again after a pause. */
  #again(): void {
    const { clock } = this.#parts;
    this.#timer?.cancel();
    if (this.#isClosed) return;
    this.#timer = clock.after(this.#alone ? lookMs : renewMs, () => void this.#look().then(() => this.#again()));
  }

  /** Renews the leases if the store answers. From its first answer on the store decides, before all leases are renewed. */
  async #look(): Promise<void> {
    const { store, clock, events } = this.#parts;
    const wasAlone = this.#alone;
    try {
      await this.#answered(store.renew(ownAccount, () => [[asId<RequestId>(""), true]]));
      this.#alone = undefined;
      if (wasAlone?.isTold) events.limitStoreBack(clock.monotonicMs() - wasAlone.sinceMs);
      await this.#renewAll(wasAlone !== undefined);
    } catch (error) {
      if (this.#alone) this.#alone = { ...this.#alone, reason: (error as Error).message };
      else this.#lose(error as Error);
    }
    this.#forgetOld();
  }

  /** Renews all leases. With `leftToo`, includes accounts without requests, because the store may have missed their end. */
  async #renewAll(leftToo: boolean): Promise<void> {
    const accounts = [...this.#held].filter(([, { live }]) => leftToo || live.size > 0);
    for (let from = 0; from < accounts.length; from += accountsAtOnce) {
      const some = accounts.slice(from, from + accountsAtOnce);
      const renewed = some.map(([account, { live }]) => this.#parts.store.renew(account, () => live));
      await this.#answered(Promise.all(renewed), renewMsMax);
    }
  }

  #forgetOld(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [account, { untilMs }] of this.#refusals) if (untilMs <= nowMs) this.#refusals.delete(account);
    for (const [account, untilMs] of this.#noTimeUntilMs) if (untilMs <= nowMs) this.#noTimeUntilMs.delete(account);
    // A stopped server may still read commands that were sent before, so ended leases are kept until it answers.
    if (this.#alone) return;
    for (const [account, { live, leftAtMs }] of this.#held)
      if (live.size === 0 && leftAtMs <= nowMs - leaseMs) this.#held.delete(account);
  }
}
