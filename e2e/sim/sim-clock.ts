/** Virtual time for whole hosts: a wall clock that jumps, and processes whose timers die with them. */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";

export class SimClock extends VirtualClock {
  #wallOffsetMs = 0;

  override now(): number {
    return super.now() + this.#wallOffsetMs;
  }

  /** Sets the wall clock like an administrator or NTP. Timers and monotonic time do not change. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }
}

export class ProcessClock implements Clock {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  after(delayMs: number, callback: () => void): Timer {
    const inner = this.#clock.after(delayMs, () => {
      this.#timers.delete(timer);
      callback();
    });
    const timer: Timer = {
      cancel: () => {
        inner.cancel();
        this.#timers.delete(timer);
      },
    };
    this.#timers.add(timer);
    return timer;
  }

  /** Number of timers that the process has set. */
  get pending(): number {
    return this.#timers.size;
  }

  kill(): void {
    for (const timer of this.#timers) timer.cancel();
  }
}

/**
 * Resolves once all promises that can settle have settled. Node.js runs ticks when its queue of microtasks is empty,
 * which is much cheaper than a turn of the event loop.
 */
export function drained(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
