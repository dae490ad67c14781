/**
 * Records signs of life of awake engines: events of answers and changed work counters. `/health` and comments in a
 * stream do not count, because the HTTP front sends them even after the generating process died.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { EngineEndpoint } from "./engine.ts";

export class EngineLife {
  readonly clock: Clock;
  /** Keyed by object. Each readiness probe makes a new endpoint, even for a new process on the same port. */
  readonly #lastMs = new WeakMap<EngineEndpoint, number>();
  readonly #work = new WeakMap<EngineEndpoint, number>();

  /** `clock` must stop while the event loop is blocked, so that silence during that time does not count. */
  constructor(clock: Clock) {
    this.clock = clock;
  }

  answered(endpoint: EngineEndpoint): void {
    this.#lastMs.set(endpoint, this.clock.monotonicMs());
  }

  /** `work`: see `EngineMetrics`. Only a change from the previous reading is a sign of life. */
  measured(endpoint: EngineEndpoint, work: number): void {
    const before = this.#work.get(endpoint);
    this.#work.set(endpoint, work);
    if (before !== undefined && before !== work) this.answered(endpoint);
  }

  /** Returns whether the engine has counters of work. Without them, silence while it reads a prompt means nothing. */
  isMeasured(endpoint: EngineEndpoint): boolean {
    return this.#work.has(endpoint);
  }

  /** Returns the monotonic time of the last sign of life, or undefined if there was none. */
  lastMs(endpoint: EngineEndpoint): number | undefined {
    return this.#lastMs.get(endpoint);
  }
}
