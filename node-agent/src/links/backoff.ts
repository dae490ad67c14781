/** How long to wait before a router is dialled again: full jitter, so that a thousand nodes do not return at once. */
import type { Clock } from "@weiche/shared/time/clock.ts";

const firstMsMax = 500;
/** With the dialling itself this stays below the 5 s within which an agent is back. */
const msMax = 4_000;
/** What lasted for so long was no failure. */
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

  /** The connection is up. */
  up(): void {
    this.#upSinceMs ??= this.#clock.monotonicMs();
  }

  /** The connection ended, or did not come up. */
  nextMs(): number {
    const upMs = this.#clock.monotonicMs() - (this.#upSinceMs ?? Infinity);
    this.#failures = upMs >= goodMs ? 0 : this.#failures + 1;
    this.#upSinceMs = undefined;
    return this.#random() * Math.min(msMax, firstMsMax * 2 ** Math.max(0, this.#failures - 1));
  }
}
