/** Account limits in the memory of one router. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";
import type { AccountLimits, LimitDecision, Limiter, LimitUse } from "./limiter.ts";

export const windowMs = 60_000;
/** Retry delay after a refusal by the parallel limit: when a place becomes free cannot be predicted. */
export const parallelRetryMs = 1_000;

interface AccountUse {
  /** Monotonic times of admission within the last 60 s, oldest first. */
  readonly admittedAtMs: number[];
  readonly live: Set<RequestId>;
}

/** The use of an account that is not in memory. */
const unused: AccountUse = { admittedAtMs: [], live: new Set() };

export class MemoryLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #accounts = new Map<AccountId, AccountUse>();
  #running = 0;
  #sweptAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sweptAtMs = clock.monotonicMs();
  }

  enter(account: AccountId, request: RequestId, limits: AccountLimits): LimitDecision {
    const decision = this.judge(account, request, limits);
    if (decision.admitted) this.count(account, request, this.#clock.monotonicMs());
    return decision;
  }

  /** Decides as `enter` does, and counts nothing. */
  judge(account: AccountId, request: RequestId, limits: AccountLimits): LimitDecision {
    const nowMs = this.#clock.monotonicMs();
    this.#forgetIdle(nowMs);
    const use = this.#accounts.get(account) ?? unused;
    if (use.live.has(request)) return { admitted: true };
    dropOld(use.admittedAtMs, nowMs);
    const inWindow = use.admittedAtMs.length;
    if (inWindow >= limits.perMinute) {
      const admittedAtMs = use.admittedAtMs[inWindow - limits.perMinute] ?? nowMs;
      // In this order: the sum of time and window is rounded, and could be more than a window away.
      return { admitted: false, limit: "minute", retryAfterMs: windowMs - (nowMs - admittedAtMs) };
    }
    if (use.live.size >= limits.parallel) return { admitted: false, limit: "parallel", retryAfterMs: parallelRetryMs };
    return { admitted: true };
  }

  /** Counts a request that was admitted at this monotonic time. Does nothing for an id that holds a place. */
  count(account: AccountId, request: RequestId, atMs: number): void {
    const { admittedAtMs, live } = this.#useOf(account);
    if (live.has(request)) return;
    // Oldest first, also if a store has answered an earlier request later.
    admittedAtMs.push(Math.max(atMs, admittedAtMs.at(-1) ?? atMs));
    live.add(request);
    this.#running++;
  }

  leave(account: AccountId, request: RequestId): void {
    if (this.#accounts.get(account)?.live.delete(request)) this.#running--;
  }

  use(account: AccountId): LimitUse {
    const use = this.#accounts.get(account) ?? unused;
    dropOld(use.admittedAtMs, this.#clock.monotonicMs());
    return { lastMinute: use.admittedAtMs.length, parallel: use.live.size };
  }

  /** Requests of all accounts that hold a parallel place. */
  get running(): number {
    return this.#running;
  }

  /** Number of accounts in memory. */
  get size(): number {
    return this.#accounts.size;
  }

  #useOf(account: AccountId): AccountUse {
    const known = this.#accounts.get(account);
    if (known) return known;
    const use = { admittedAtMs: [], live: new Set<RequestId>() };
    this.#accounts.set(account, use);
    return use;
  }

  /** Runs at most once per window, so that its cost per request stays small. */
  #forgetIdle(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < windowMs) return;
    this.#sweptAtMs = nowMs;
    for (const [account, use] of this.#accounts) {
      dropOld(use.admittedAtMs, nowMs);
      if (use.live.size === 0 && use.admittedAtMs.length === 0) this.#accounts.delete(account);
    }
  }
}

function dropOld(timesMs: number[], nowMs: number): void {
  let old = 0;
  while (old < timesMs.length && timesMs[old]! <= nowMs - windowMs) old++;
  if (old > 0) timesMs.splice(0, old);
}
