/** Judges `retry-after` by the times for which requests of a model were seen to hold their places. */
import type { ModelId } from "@weiche/shared/ids.ts";

interface Held {
  readonly shortestMs: number;
  readonly longestMs: number;
}

const retrySecondsMin = 1;
const retrySecondsMax = 300;

export class HeldRule {
  readonly #held = new Map<ModelId, Held>();

  /** A request has given its places back after `heldMs`. */
  ended(model: ModelId, heldMs: number): void {
    const { shortestMs, longestMs } = this.#held.get(model) ?? { shortestMs: Infinity, longestMs: 0 };
    this.#held.set(model, { shortestMs: Math.min(shortestMs, heldMs), longestMs: Math.max(longestMs, heldMs) });
  }

  /**
   * Whether a client may be told to wait so many seconds when others wait for so many turns of the whole engine: at least
   * the time of that many shortest requests seen, and at most that of the longest.
   */
  isHonest(model: ModelId, seconds: number, turns: { readonly least: number; readonly most: number }): boolean {
    if (seconds < retrySecondsMin || seconds > retrySecondsMax) return false;
    const held = this.#held.get(model);
    if (!held) return true;
    const bounded = (ms: number) => Math.min(retrySecondsMax, Math.max(retrySecondsMin, ms / 1_000));
    const roundingSeconds = 1e-6;
    return (
      seconds >= bounded(held.shortestMs * turns.least) - roundingSeconds &&
      seconds <= bounded(held.longestMs * turns.most) + roundingSeconds
    );
  }
}
