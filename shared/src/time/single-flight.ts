/**
 * Runs work once at a time without losing a wish. A wish during a run causes one more run. A failed run is
 * repeated after a pause.
 *
 *            wish               due                ended, nothing wished
 *   idle ──────────▶ waiting ─────────▶ running ─────────────────────────▶ idle
 *                       ▲                  │
 *                       └──────────────────┘ failed, or wished meanwhile
 */
import type { Clock, Timer } from "./clock.ts";

export class SingleFlight implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #work: () => Promise<void>;
  readonly #retryMs: number;
  /** Monotonic time of the earliest wish without a run yet. Infinity if there is none. */
  #wishedAtMs = Infinity;
  /** After a failure, no run begins before this time. */
  #pausedUntilMs = -Infinity;
  #timer: Timer | undefined;
  #isRunning = false;
  /** Whether it accepts no more wishes. A current run may check it. */
  isClosed = false;
  /** Settles with the last run. Never rejects. */
  #ended: Promise<void> = Promise.resolve();
  #isCancelled = false;

  /** `retryMs` is the pause after a run that rejected. To report failures, catch them in `work`. */
  constructor(clock: Clock, work: () => Promise<void>, retryMs: number) {
    this.#clock = clock;
    this.#work = work;
    this.#retryMs = retryMs;
  }

  /** Begins a run within `delayMs`, or after the current run or the pause after a failure. */
  wish(delayMs = 0): void {
    if (this.isClosed) return;
    const atMs = this.#clock.monotonicMs() + Math.max(0, delayMs);
    if (atMs >= this.#wishedAtMs) return;
    this.#wishedAtMs = atMs;
    if (!this.#isRunning) this.#arm();
  }

  /** Drops pending wishes, and the repetition of the current run if it fails. */
  cancel(): void {
    this.#isCancelled = true;
    this.#wishedAtMs = Infinity;
    this.#pausedUntilMs = -Infinity;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Accepts no more wishes. Resolves when nothing runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosed = true;
    this.cancel();
    await this.#ended;
  }

  /** Starts the run that is due, or a timer for it. */
  #arm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#wishedAtMs === Infinity) return;
    const waitMs = Math.max(this.#wishedAtMs, this.#pausedUntilMs) - this.#clock.monotonicMs();
    if (waitMs <= 0) this.#ended = this.#run();
    else this.#timer = this.#clock.after(waitMs, () => this.#arm());
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    this.#isCancelled = false;
    this.#wishedAtMs = Infinity;
    try {
      await Promise.try(this.#work); // never in the same turn, even if it throws at once
      this.#pausedUntilMs = -Infinity;
    } catch {
      if (!this.#isCancelled) {
        const nowMs = this.#clock.monotonicMs();
        this.#wishedAtMs = Math.min(this.#wishedAtMs, nowMs);
        this.#pausedUntilMs = nowMs + this.#retryMs;
      }
    }
    this.#isRunning = false;
    this.#arm();
  }
}
