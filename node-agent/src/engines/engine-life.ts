/**
 * Signs of life of the engines that are awake: an event of an answer, or a measure of work that moved. Health is none, nor
 * is a comment in a stream: both come from a front that may well outlive the engine behind it.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { EngineEndpoint } from "./engine.ts";

export class EngineLife {
  readonly clock: Clock;
  /** An engine that is proven anew, perhaps another process on the same port, has another endpoint. */
  readonly #lastMs = new WeakMap<EngineEndpoint, number>();
  readonly #work = new WeakMap<EngineEndpoint, number>();

  /** `clock`: one that stands still while this process does. Who did not listen cannot call an engine silent. */
  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** It sent a piece of an answer. */
  answered(endpoint: EngineEndpoint): void {
    this.#lastMs.set(endpoint, this.clock.monotonicMs());
  }

  /** `work`: see `EngineMetrics`. The first reading has nothing to have moved from. */
  measured(endpoint: EngineEndpoint, work: number): void {
    const before = this.#work.get(endpoint);
    this.#work.set(endpoint, work);
    if (before !== undefined && before !== work) this.answered(endpoint);
  }

  /** In the clock's monotonic time; undefined: it has not shown any yet. */
  lastMs(endpoint: EngineEndpoint): number | undefined {
    return this.#lastMs.get(endpoint);
  }
}
