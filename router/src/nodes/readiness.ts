/**
 * Decides when a router that has just started is ready for requests: once it reaches nine tenths of the nodes that were
 * linked before it started, or after 15 s. While it reaches no node and another router does, it is not ready, however
 * long that takes. Otherwise a balancer would send it requests that it has no node for.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";

const shareMin = 0.9;
const waitMsMax = 15_000;

interface ReadinessParts {
  /** The nodes that were linked to any router within the last minute. */
  readonly seen: ReadonlySet<string>;
  /** Returns the names of the nodes that can take requests now. */
  readonly reached: () => Iterable<string>;
  /** Returns whether nodes are linked to another router now. */
  readonly othersHaveNodes: () => boolean;
  readonly clock: Clock;
}

export class Readiness {
  readonly #parts: ReadinessParts;
  readonly #sinceMs: number;
  #isReady = false;

  /** Create it once the listeners are open. */
  constructor(parts: ReadinessParts) {
    this.#parts = parts;
    this.#sinceMs = parts.clock.monotonicMs();
  }

  /** Stays true once it is true. */
  isReady(): boolean {
    this.#isReady ||= this.#mayServe(new Set(this.#parts.reached()));
    return this.#isReady;
  }

  #mayServe(reached: ReadonlySet<string>): boolean {
    const { seen, othersHaveNodes, clock } = this.#parts;
    if (reached.size === 0 && othersHaveNodes()) return false;
    const hasWaited = clock.monotonicMs() - this.#sinceMs >= waitMsMax;
    return hasWaited || seen.intersection(reached).size >= shareMin * seen.size;
  }
}
