/**
 * Work of which one run at a time goes on, and of which no wish is forgotten: a wish that comes while it runs causes one
 * more run, and a run that fails is followed by another one after a pause.
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
  readonly #retryMs: () => number;
  /** Monotonic time of the earliest wish that no run has begun for; Infinity: there is none. */
  #wishedAtMs = Infinity;
  /** After a failure: no run begins before. */
  #pausedUntilMs = -Infinity;
  #timer: Timer | undefined;
  #isRunning = false;
  #isClosed = false;
  /** Of the last run; never rejects. */
  #ended: Promise<void> = Promise.resolve();
  #isCancelled = false;

  /** `retryMs`: the pause after a run that rejected. Whoever wants to tell of failures does so in `work`. */
  constructor(clock: Clock, work: () => Promise<void>, retryMs: () => number) {
    this.#clock = clock;
    this.#work = work;
    this.#retryMs = retryMs;
  }

  /** A run begins `delayMs` from now or earlier, unless the pause after a failure or the present run lasts longer. */
  wish(delayMs = 0): void {
    if (this.#isClosed) return;
    const atMs = this.#clock.monotonicMs() + Math.max(0, delayMs);
    if (atMs >= this.#wishedAtMs) return;
    this.#wishedAtMs = atMs;
    if (!this.#isRunning) this.#arm();
  }

  /** Whether it takes no more wishes. A run that is not over yet may ask. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Drops what is wished, and the repetition of a present run if it fails. */
  cancel(): void {
    this.#isCancelled = true;
    this.#wishedAtMs = Infinity;
    this.#pausedUntilMs = -Infinity;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Takes no more wishes; resolves when nothing runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.cancel();
    await this.#ended;
  }

  /** Begins the run that is due, or waits for it. */
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
        this.#pausedUntilMs = nowMs + this.#retryMs();
      }
    }
    this.#isRunning = false;
    this.#arm();
  }
}
