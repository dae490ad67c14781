/**
 * Records signs of life of awake engines: events of answers and changed work counters. `/health` and comments in a
 * stream are none: the HTTP front sends them even after the generating process died.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { EngineEndpoint } from "./engine.ts";

export class EngineLife {
  readonly clock: Clock;
  /** Keyed by object: each proof of readiness makes a new endpoint, even for a new process on the same port. */
  readonly #lastMs = new WeakMap<EngineEndpoint, number>();
  readonly #work = new WeakMap<EngineEndpoint, number>();

  /** `clock` must stand still while this process does: silence that the agent itself missed does not count. */
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

  /** Whether the engine has counters of work: only then its silence while it reads a prompt means anything. */
  isMeasured(endpoint: EngineEndpoint): boolean {
    return this.#work.has(endpoint);
  }

  /** Time of the last sign of life, on the clock's monotonic time; undefined: none yet. */
  lastMs(endpoint: EngineEndpoint): number | undefined {
    return this.#lastMs.get(endpoint);
  }
}
