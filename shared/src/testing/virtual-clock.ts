import type { Clock, Timer } from "../time/clock.ts";

/** A clock that moves only when a test advances it. Timers fire in the order of their time, then of their creation. */
export class VirtualClock implements Clock {
  #nowMs: number;
  #sequence = 0;
  readonly #timers: { readonly atMs: number; readonly sequence: number; readonly callback: () => void }[] = [];

  constructor(startMs = 1_800_000_000_000) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): Timer {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), sequence: this.#sequence++, callback };
    this.#insert(timer);
    return {
      cancel: () => {
        const index = this.#timers.indexOf(timer);
        if (index >= 0) this.#timers.splice(index, 1);
      },
    };
  }

  /** Number of pending timers. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Whether another timer is due at this instant. */
  get isDue(): boolean {
    return this.#timers[0] !== undefined && this.#timers[0].atMs <= this.#nowMs;
  }

  /** Moves to the next timer and fires it. Returns false if there is none at or before `untilMs`. */
  step(untilMs = Infinity): boolean {
    const next = this.#timers[0];
    if (!next || next.atMs > untilMs) return false;
    this.#timers.shift();
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.callback();
    return true;
  }

  /** Moves ahead without firing timers, as if the event loop stalled. Due timers are then late. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /** Moves `ms` ahead and fires all due timers, including new ones. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    while (this.step(untilMs));
    this.#nowMs = untilMs;
  }

  /** Like `advance`, but lets promises settle between timers. */
  async advanceAsync(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    while (this.step(untilMs)) await settle();
    this.#nowMs = untilMs;
    await settle();
  }

  #insert(timer: { atMs: number; sequence: number; callback: () => void }): void {
    // Simulations have thousands of timers, so the place behind all that are due at the same time is searched by halves.
    let [from, to] = [0, this.#timers.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#timers[middle]!.atMs > timer.atMs) to = middle;
      else from = middle + 1;
    }
    this.#timers.splice(from, 0, timer);
  }
}

/** Runs all callbacks of promises that are already resolved. */
export async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
