/**
 * The limits of accounts over several routers, which a store counts. While the store does not answer, each router
 * decides by its own count, which goes on all the time. A refusal by the own count is one by that of all, so that
 * neither a store that loses what it knew nor one that is gone lets an account be without limits.
 */
import { sleep, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import { asId, type AccountId, type RequestId } from "@weiche/shared/ids.ts";
import { leaseMs } from "./limit-scripts.ts";
import type { LimitStore, StoreDecision } from "./limit-store.ts";
import type { AccountLimits, LimitDecision, Limiter, LimitJudgement, LimitUse } from "./limiter.ts";
import type { MemoryLimiter } from "./memory-limiter.ts";
import { toldMsMax } from "./told-times.ts";

/** A request is not held up for longer: then its router decides alone, as it does with all until the store is back. */
const answerMsMax = 100;
/**
 * So long after a refusal by the parallel limit the store is asked once more: a client that asks one question after the
 * other may have the end of an answer from another router before the store has heard of it.
 */
const againMs = 10;
/** So long after the store had no time left to tell, it is not asked for another one of the account. */
const noTimeMs = 1_000;
/** How often leases are renewed. */
const renewMs = 5_000;
/** How often a router that decides alone looks for the store. */
const lookMs = 500;
/** Leases of so many accounts are renewed at once, so that requests between them do not wait. */
const accountsAtOnce = 50;
/** How long the renewal of these may take. */
const renewMsMax = 1_000;
/** How long a start waits for the store, and how often it looks. */
const startMsMax = 1_000;
const lookAtStartMs = 20;
/** No account: a router shows by it that the store takes what it writes. */
const ownAccount = asId<AccountId>("router");

export interface SharedLimiterEvents {
  limitStoreLost(reason: string): void;
  limitStoreBack(aloneMs: number): void;
  /** A request was decided by the own count of this router. */
  limitDecidedAlone(): void;
  limitStoreAnswered(durationMs: number): void;
}

export interface SharedLimiterParts {
  readonly store: LimitStore;
  /** Counts what is admitted here, whoever decides. */
  readonly own: MemoryLimiter;
  readonly clock: Clock;
  readonly events: SharedLimiterEvents;
  /** The limits that hold while the store does not answer: those of the account, or this router's share of them. */
  readonly whenDown: "full" | "share";
  /** How many routers share the limits, this one included. */
  readonly routers: () => number;
}

interface Alone {
  readonly sinceMs: number;
  readonly reason: string;
  /** An event has told of it. */
  readonly isTold: boolean;
}

interface Refusal {
  readonly untilMs: number;
  readonly perMinute: number;
}

interface Held {
  /** Requests that hold a place or ask for one. */
  readonly live: Set<RequestId>;
  /** When one of them last gave it back. A store that fails over may have missed that, and counts the lease on. */
  leftAtMs: number;
}

export class SharedLimiter implements Limiter, AsyncDisposable {
  readonly #parts: SharedLimiterParts;
  readonly #held = new Map<AccountId, Held>();
  /** Refusals by the minute, which hold until their time. */
  readonly #refusals = new Map<AccountId, Refusal>();
  /** Until when the store is not asked for a time to tell. */
  readonly #noTimeUntilMs = new Map<AccountId, number>();
  /** The last of those that ask for a time to tell. None rejects. */
  readonly #telling = new Map<AccountId, Promise<number>>();
  /** Absent: the store decides. */
  #alone: Alone | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  private constructor(parts: SharedLimiterParts) {
    this.#parts = parts;
    this.#alone = { sinceMs: parts.clock.monotonicMs(), reason: "it has not answered yet", isTold: false };
  }

  /** Resolves once the store has answered; after a second also without it. */
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

  /** Since when this router decides alone, by the monotonic clock, and why. Absent: the store decides. */
  get alone(): Alone | undefined {
    return this.#alone;
  }

  async enter(account: AccountId, request: RequestId, limits: AccountLimits): Promise<LimitDecision> {
    const judgement = await this.#judge(account, request, limits);
    if (judgement.admitted) return judgement;
    const retryAfterMs = await this.#tell(account, request, limits);
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
   * Returns after which time a refused request would be admitted. Asks for one of an account after the other, since
   * hundreds at once would hold the store up; once there is no time left, the others need not ask.
   */
  #tell(account: AccountId, request: RequestId, limits: AccountLimits): Promise<number> {
    const before = this.#telling.get(account) ?? Promise.resolve(0);
    const told = before.then(() => this.#askWhatToTell(account, request, limits));
    this.#telling.set(account, told);
    void told.then(() => {
      if (this.#telling.get(account) === told) this.#telling.delete(account);
    });
    return told;
  }

  async #askWhatToTell(account: AccountId, request: RequestId, limits: AccountLimits): Promise<number> {
    const { own, store, clock } = this.#parts;
    if (this.#alone) return own.tell(account, limits);
    if ((this.#noTimeUntilMs.get(account) ?? -Infinity) > clock.monotonicMs()) return toldMsMax;
    try {
      const told = await this.#answered(store.tell(account, request, limits, own.durationsOf(account)));
      if (told === undefined) this.#noTimeUntilMs.set(account, clock.monotonicMs() + noTimeMs);
      return told ?? toldMsMax;
    } catch (error) {
      this.#lose(error as Error);
      return own.tell(account, limits);
    }
  }

  async #decide(account: AccountId, request: RequestId, limits: AccountLimits): Promise<LimitJudgement> {
    const { own, store, clock, events } = this.#parts;
    this.#heldOf(account).live.add(request);
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
    // Others have been admitted here since it was asked, which a store that has just forgotten them does not know.
    const again = own.judge(account, request, limits);
    if (again.admitted) own.count(account, request, askedAtMs);
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

  /** Refuses by this router's own count or by an earlier answer of the store. undefined: the store must be asked. */
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
    if (decision.admitted) own.count(account, request, clock.monotonicMs());
    else this.#release(account, request);
    events.limitDecidedAlone();
    return decision;
  }

  #heldOf(account: AccountId): Held {
    let held = this.#held.get(account);
    if (!held) this.#held.set(account, (held = { live: new Set(), leftAtMs: 0 }));
    return held;
  }

  /** Returns whether it was held. */
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
      // Where this process was held up, the answer may be there already, and is read first.
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

  /** Looks for the store again after a while. */
  #again(): void {
    const { clock } = this.#parts;
    this.#timer?.cancel();
    if (this.#isClosed) return;
    this.#timer = clock.after(this.#alone ? lookMs : renewMs, () => void this.#look().then(() => this.#again()));
  }

  /** Renews the leases, if the store answers. From its answer on it decides, also before it has heard of all leases. */
  async #look(): Promise<void> {
    const { store, clock, events } = this.#parts;
    const wasAlone = this.#alone;
    try {
      await this.#answered(store.renew(ownAccount, [asId<RequestId>("")]));
      this.#alone = undefined;
      if (wasAlone?.isTold) events.limitStoreBack(clock.monotonicMs() - wasAlone.sinceMs);
      await this.#renewAll(wasAlone !== undefined);
    } catch (error) {
      if (this.#alone) this.#alone = { ...this.#alone, reason: (error as Error).message };
      else this.#lose(error as Error);
    }
    this.#forgetOld();
  }

  /** `leftToo`: also tells the store of accounts whose requests have left, since it may not have heard of that. */
  async #renewAll(leftToo: boolean): Promise<void> {
    const accounts = [...this.#held].filter(([, { live }]) => leftToo || live.size > 0);
    for (let from = 0; from < accounts.length; from += accountsAtOnce) {
      const some = accounts.slice(from, from + accountsAtOnce);
      const renewed = some.map(([account, { live }]) => this.#parts.store.renew(account, live));
      await this.#answered(Promise.all(renewed), renewMsMax);
    }
  }

  #forgetOld(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [account, { untilMs }] of this.#refusals) if (untilMs <= nowMs) this.#refusals.delete(account);
    for (const [account, untilMs] of this.#noTimeUntilMs) if (untilMs <= nowMs) this.#noTimeUntilMs.delete(account);
    // A server that was stopped may yet read what it was told before.
    if (this.#alone) return;
    for (const [account, { live, leftAtMs }] of this.#held)
      if (live.size === 0 && leftAtMs <= nowMs - leaseMs) this.#held.delete(account);
  }
}
