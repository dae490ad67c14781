/** Uses one timer for thousands of streams. Jobs wait in buckets of a millisecond, and the timer waits for the first bucket. */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";

export interface Job {
  due(nowMs: number): void;
}

/** The number of buckets checked one by one for the next job before the whole map is searched. */
const scanMax = 128;

export class TimerWheel {
  readonly #clock: Clock;
  readonly #buckets = new Map<number, Job[]>();
  #timer: Timer | undefined;
  #timerTick = Infinity;
  /** The first bucket that the next turn checks. */
  #firstTick = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get nowMs(): number {
    return this.#clock.monotonicMs();
  }

  /**
   * Calls `job.due` at `atMs` of this wheel's time or a little later. Jobs cannot be cancelled, so they check
   * themselves whether they have ended.
   */
  add(atMs: number, job: Job): void {
    const tick = Math.max(Math.ceil(atMs), this.#firstTick);
    const bucket = this.#buckets.get(tick);
    if (bucket) bucket.push(job);
    else this.#buckets.set(tick, [job]);
    if (tick < this.#timerTick) this.#arm(tick);
  }

  close(): void {
    this.#timer?.cancel();
    this.#buckets.clear();
  }

  #arm(tick: number): void {
    this.#timer?.cancel();
    this.#timerTick = tick;
    this.#timer = this.#clock.after(Math.max(0, tick - this.nowMs), () => this.#turn());
  }

  #turn(): void {
    const nowMs = this.nowMs;
    const from = this.#timerTick;
    this.#firstTick = Math.floor(nowMs) + 1;
    this.#timerTick = -Infinity; // jobs added meanwhile do not arm the timer, because the end of this turn does
    for (let tick = from; tick <= nowMs; tick++) {
      const bucket = this.#buckets.get(tick);
      if (!bucket) continue;
      this.#buckets.delete(tick);
      for (const job of bucket) job.due(nowMs);
    }
    this.#timerTick = Infinity;
    const next = this.#next(this.#firstTick);
    if (next !== undefined) this.#arm(next);
  }

  #next(from: number): number | undefined {
    if (this.#buckets.size === 0) return undefined;
    for (let tick = from; tick < from + scanMax; tick++) if (this.#buckets.has(tick)) return tick;
    return Math.min(...this.#buckets.keys());
  }
}
