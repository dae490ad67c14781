/**
 * A clock for the timeouts of peers. While our own event loop is blocked, data of peers waits unread. This clock
 * therefore stops for the time by which its ticks are late, and its timers fire that much later.
 */
import type { Clock, Timer } from "./clock.ts";

const tickMs = 100;
/** A turn of the loop may be this late without stopping the clock. */
const lateMsMax = 100;
/** The longest total delay of a timer. After a longer stall, the peers have given this process up, too. */
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
