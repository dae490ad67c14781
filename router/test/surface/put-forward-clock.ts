/** The system's clock, which a test can put forward. Everything due by then happens at once. */
import { systemClock, type Clock, type Timer } from "@weiche/shared/time/clock.ts";

interface Waiting {
  readonly dueMs: number;
  readonly fire: () => void;
}

export class PutForwardClock implements Clock {
  #byMs = 0;
  #wallByMs = 0;
  readonly #waiting = new Set<Waiting>();

  now = (): number => systemClock.now() + this.#byMs + this.#wallByMs;
  monotonicMs = (): number => systemClock.monotonicMs() + this.#byMs;

  after(delayMs: number, callback: () => void): Timer {
    const end = () => {
      timer.cancel();
      this.#waiting.delete(waiting);
    };
    const fire = () => {
      end();
      callback();
    };
    const waiting = { dueMs: this.monotonicMs() + delayMs, fire };
    const timer = systemClock.after(delayMs, fire);
    this.#waiting.add(waiting);
    return { cancel: end };
  }

  /** Puts only the wall clock forward, as after a suspension of the machine. Timers do not notice. */
  jump(ms: number): void {
    this.#wallByMs += ms;
  }

  shift(ms: number): void {
    this.#byMs += ms;
    for (const { dueMs, fire } of [...this.#waiting]) if (dueMs <= this.monotonicMs()) fire();
  }
}
