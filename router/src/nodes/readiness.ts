/**
 * When a router that has just started may be sent requests: once it reaches nine tenths of the nodes that were there
 * before it, or has waited 15 s for them. While it reaches none and another router has some, it may not, however long
 * that takes. A balancer would otherwise send it requests that it has no node for.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";

const shareMin = 0.9;
const waitMsMax = 15_000;

interface ReadinessParts {
  /** The nodes that any router was linked to within the last minute. */
  readonly seen: ReadonlySet<string>;
  /** The names of the nodes that requests can be sent to now. */
  readonly reached: () => Iterable<string>;
  /** Whether nodes are linked to another router now. */
  readonly othersHaveNodes: () => boolean;
  readonly clock: Pick<Clock, "monotonicMs">;
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

  /** Once true it stays so. */
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
