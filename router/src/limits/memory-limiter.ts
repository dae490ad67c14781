/** Counts the limits of accounts in the memory of one router. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";
import type { AccountLimits, LimitDecision, Limiter, LimitJudgement, LimitUse } from "./limiter.ts";
import { Durations, secondsToWait, ToldTimes, toldMsMax, windowMs } from "./told-times.ts";

interface AccountUse {
  /** The monotonic times of admissions within the last 60 s, oldest first. */
  readonly admittedAtMs: number[];
  /** The running requests with the monotonic times of their admission. */
  readonly live: Map<RequestId, number>;
  readonly told: ToldTimes;
  readonly durations: Durations;
  /** The highest use since the last call of `takePeaks`. */
  peak: LimitUse;
}

const noUse: LimitUse = { lastMinute: 0, parallel: 0 };

/** The use of an account that is not in memory. */
const unused: Pick<AccountUse, "admittedAtMs" | "live"> = { admittedAtMs: [], live: new Map() };

export class MemoryLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #accounts = new Map<AccountId, AccountUse>();
  /** The durations over all accounts, used for accounts without known durations. */
  readonly #durations = new Durations();
  #running = 0;
  #sweptAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sweptAtMs = clock.monotonicMs();
  }

  enter(account: AccountId, request: RequestId, limits: AccountLimits, isRetry = false): LimitDecision {
    const judgement = this.judge(account, request, limits);
    if (!judgement.admitted) return { ...judgement, retryAfterMs: this.tell(account, limits, isRetry) };
    this.count(account, request, this.#clock.monotonicMs());
    return judgement;
  }

  /** Decides as `enter` does, without counting. */
  judge(account: AccountId, request: RequestId, limits: AccountLimits): LimitJudgement {
    const nowMs = this.#clock.monotonicMs();
    this.#forgetIdle(nowMs);
    const use = this.#accounts.get(account) ?? unused;
    if (use.live.has(request)) return { admitted: true };
    dropOld(use.admittedAtMs, nowMs);
    if (use.admittedAtMs.length >= limits.perMinute) return { admitted: false, limit: "minute" };
    if (use.live.size >= limits.parallel) return { admitted: false, limit: "parallel" };
    return { admitted: true };
  }

  /** Returns after how many ms the request just refused would be admitted, and remembers this time. */
  tell(account: AccountId, limits: AccountLimits, isRetry: boolean): number {
    const nowMs = this.#clock.monotonicMs();
    const { admittedAtMs, live, told } = this.#useOf(account);
    const hasComeBack = told.comeBack(nowMs) || isRetry;
    const begunAtMs = [...live.values()];
    const durationsMs = this.durationsOf(account);
    const occupied = { admittedAtMs, begunAtMs, toldAtMs: told.atMs, durationsMs, hasComeBack };
    const seconds = secondsToWait(occupied, limits, nowMs);
    if (seconds === undefined) return toldMsMax;
    told.add(nowMs + seconds * 1_000);
    return seconds * 1_000;
  }

  /** Returns the latest durations of the account, or of all accounts if too few are known, in ascending order. */
  durationsOf(account: AccountId): readonly number[] {
    return this.#accounts.get(account)?.durations.knownMs ?? this.#durations.knownMs ?? [];
  }

  /** Counts a request that was admitted at this monotonic time. Does nothing if the id already holds a place. */
  count(account: AccountId, request: RequestId, atMs: number): void {
    const use = this.#useOf(account);
    const { admittedAtMs, live, told } = use;
    if (live.has(request)) return;
    told.comeBack(atMs);
    // Keeps the oldest first, also if a store answers an earlier request later.
    admittedAtMs.push(Math.max(atMs, admittedAtMs.at(-1) ?? atMs));
    live.set(request, atMs);
    this.#running++;
    use.peak = higher(use.peak, { lastMinute: admittedAtMs.length, parallel: live.size });
  }

  /** Returns the highest use of each account since the last call, without accounts that had none. */
  takePeaks(): ReadonlyMap<AccountId, LimitUse> {
    const peaks = new Map<AccountId, LimitUse>();
    for (const [account, use] of this.#accounts) {
      const now = this.use(account);
      const peak = higher(use.peak, now);
      use.peak = now;
      if (peak.lastMinute + peak.parallel > 0) peaks.set(account, peak);
    }
    return peaks;
  }

  leave(account: AccountId, request: RequestId): void {
    const use = this.#accounts.get(account);
    const begunAtMs = use?.live.get(request);
    if (!use || begunAtMs === undefined) return;
    use.live.delete(request);
    this.#running--;
    const durationMs = this.#clock.monotonicMs() - begunAtMs;
    for (const durations of [use.durations, this.#durations]) durations.note(durationMs);
  }

  use(account: AccountId): LimitUse {
    const use = this.#accounts.get(account) ?? unused;
    dropOld(use.admittedAtMs, this.#clock.monotonicMs());
    return { lastMinute: use.admittedAtMs.length, parallel: use.live.size };
  }

  /** The number of requests of all accounts that hold a parallel place. */
  get running(): number {
    return this.#running;
  }

  /** The number of accounts in memory. */
  get size(): number {
    return this.#accounts.size;
  }

  #useOf(account: AccountId): AccountUse {
    const known = this.#accounts.get(account);
    if (known) return known;
    const use = {
      ...{ admittedAtMs: [], live: new Map<RequestId, number>() },
      ...{ told: new ToldTimes(), durations: new Durations(), peak: noUse },
    };
    this.#accounts.set(account, use);
    return use;
  }

  /** Forgets idle accounts, at most once per window, so that its cost per request stays small. */
  #forgetIdle(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < windowMs) return;
    this.#sweptAtMs = nowMs;
    for (const [account, use] of this.#accounts) {
      dropOld(use.admittedAtMs, nowMs);
      if (use.live.size === 0 && use.admittedAtMs.length === 0) this.#accounts.delete(account);
    }
  }
}

/** Returns the higher use of each limit. */
export function higher(a: LimitUse, b: LimitUse): LimitUse {
  return { lastMinute: Math.max(a.lastMinute, b.lastMinute), parallel: Math.max(a.parallel, b.parallel) };
}

function dropOld(timesMs: number[], nowMs: number): void {
  let old = 0;
  while (old < timesMs.length && timesMs[old]! <= nowMs - windowMs) old++;
  if (old > 0) timesMs.splice(0, old);
}
