/**
 * When a router that has just started may be sent requests: once it reaches nine tenths of the nodes that were there
 * before it, or has waited 15 s for them. A balancer would otherwise send it requests that it has no node for.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";

const shareMin = 0.9;
const waitMsMax = 15_000;

export class Readiness {
  readonly #seen: ReadonlySet<string>;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #sinceMs: number;
  #isReady = false;

  /** `seen`: the nodes that any router was linked to within the last minute. Create it once the listeners are open. */
  constructor(seen: ReadonlySet<string>, clock: Pick<Clock, "monotonicMs">) {
    this.#seen = seen;
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** Once true it stays so. `reached`: the names of the nodes that requests can be sent to. */
  isReady(reached: () => Iterable<string>): boolean {
    this.#isReady ||= this.#clock.monotonicMs() - this.#sinceMs >= waitMsMax || this.#reachesEnough(reached());
    return this.#isReady;
  }

  #reachesEnough(reached: Iterable<string>): boolean {
    return this.#seen.intersection(new Set(reached)).size >= shareMin * this.#seen.size;
  }
}
