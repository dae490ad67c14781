/**
 * The time to wait before a router is dialled again, with full jitter, so that a thousand nodes do not return at once.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";

const firstMsMax = 500;
/** With the time for dialling, an agent is back within 5 s. */
const msMax = 4_000;
/** A connection that lasted this long did not fail. */
const goodMs = 5_000;

export class Backoff {
  readonly #clock: Clock;
  readonly #random: () => number;
  #failures = 0;
  #upSinceMs: number | undefined;

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  up(): void {
    this.#upSinceMs ??= this.#clock.monotonicMs();
  }

  nextMs(): number {
    const upMs = this.#clock.monotonicMs() - (this.#upSinceMs ?? Infinity);
    this.#failures = upMs >= goodMs ? 0 : this.#failures + 1;
    this.#upSinceMs = undefined;
    return this.#random() * Math.min(msMax, firstMsMax * 2 ** Math.max(0, this.#failures - 1));
  }
}
