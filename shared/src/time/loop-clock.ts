/**
 * A clock for the timeouts of peers. While our own event loop stalls, what peers send waits to be read, so this clock
 * stops for as long as its ticks were late, and its timers fire that much later.
 */
import type { Clock, Timer } from "./clock.ts";

const tickMs = 100;
/** Delay of a turn of the loop that counts as normal. */
const lateMsMax = 100;
/** Most that a timer is delayed in all. After a longer stall, peers have given us up, too. */
export const forgivenMsMax = 10_000;

export class LoopClock implements Clock, Disposable {
  readonly #clock: Clock;
  #tickedAtMs: number;
  /** This clock's own time at the last tick. */
  #ownMs: number;
  #ticking: Timer;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#ownMs = this.#tickedAtMs = clock.monotonicMs();
    this.#ticking = clock.after(tickMs, this.#tick);
  }

  now(): number {
    return this.#clock.now();
  }

  monotonicMs(): number {
    return this.#ownMs + Math.min(this.#clock.monotonicMs() - this.#tickedAtMs, tickMs + lateMsMax);
  }

  after(delayMs: number, callback: () => void): Timer {
    const dueMs = this.monotonicMs() + delayMs;
    const latestMs = this.#clock.monotonicMs() + delayMs + forgivenMsMax;
    const check = () => {
      const leftMs = Math.min(dueMs - this.monotonicMs(), latestMs - this.#clock.monotonicMs());
      if (leftMs > 0) timer = this.#clock.after(leftMs, check);
      else callback();
    };
    let timer = this.#clock.after(delayMs, check);
    return { cancel: () => timer.cancel() };
  }

  [Symbol.dispose](): void {
    this.#ticking.cancel();
  }

  readonly #tick = (): void => {
    this.#ownMs = this.monotonicMs();
    this.#tickedAtMs = this.#clock.monotonicMs();
    this.#ticking = this.#clock.after(tickMs, this.#tick);
  };
}
