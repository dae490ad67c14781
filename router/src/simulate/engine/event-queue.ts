/** Virtual time: a clock whose callbacks fire in the order of their time, then of their creation. */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { Heap } from "./heap.ts";

class Event implements Timer {
  readonly atMs: number;
  readonly sequence: number;
  /** Undefined once it is cancelled. */
  callback: (() => void) | undefined;

  constructor(atMs: number, sequence: number, callback: () => void) {
    this.atMs = atMs;
    this.sequence = sequence;
    this.callback = callback;
  }

  cancel(): void {
    this.callback = undefined;
  }
}

export class EventQueue implements Clock {
  #nowMs = 0;
  #sequence = 0;
  readonly #events = new Heap<Event>((a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.sequence < b.sequence));

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): Timer {
    const event = new Event(this.#nowMs + Math.max(0, delayMs), this.#sequence++, callback);
    this.#events.push(event);
    return event;
  }

  /** Moves to the next event and fires it. Returns false if there is none at or before `untilMs`. */
  step(untilMs = Infinity): boolean {
    const next = this.#events.top;
    if (!next || next.atMs > untilMs) return false;
    this.#events.pop();
    if (!next.callback) return true;
    this.#nowMs = next.atMs;
    next.callback();
    return true;
  }
}
