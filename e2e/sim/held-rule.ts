/** Checks `retry-after` against the times for which requests of a model held their places. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { SimRequest } from "./sim-request.ts";

interface Held {
  readonly shortestMs: number;
  readonly longestMs: number;
}

interface Turns {
  readonly least: number;
  readonly most: number;
  /** The places that the request itself takes. */
  readonly own: number;
}

const retrySecondsMin = 1;
const retrySecondsMax = 300;

export class HeldRule {
  readonly #held = new Map<ModelId, Held>();

  /** Records that a request released its places after `heldMs`. */
  ended(model: ModelId, heldMs: number): void {
    const { shortestMs, longestMs } = this.#held.get(model) ?? { shortestMs: Infinity, longestMs: 0 };
    this.#held.set(model, { shortestMs: Math.min(shortestMs, heldMs), longestMs: Math.max(longestMs, heldMs) });
  }

  /** The latest time at which a refused client of each model comes back. */
  readonly #latestMs = new Map<ModelId, number>();

  /** Records that a client of the model was refused with this `retry-after`. */
  told(model: ModelId, seconds: number, nowMs: number): void {
    this.#latestMs.set(model, Math.max(this.#latestMs.get(model) ?? 0, nowMs + seconds * 1_000));
  }

  /**
   * Returns whether `seconds` is a plausible `retry-after` while the waiters need `turns` of the whole engine. The
   * lower bound is that many of the shortest requests. The upper bound is that many of the longest requests, or one
   * turn after the latest time that another client was given.
   */
  isHonest(model: ModelId, seconds: number, turns: Turns, nowMs: number): boolean {
    if (seconds < retrySecondsMin || seconds > retrySecondsMax) return false;
    const held = this.#held.get(model);
    if (!held) return true;
    const bounded = (ms: number) => Math.min(retrySecondsMax, Math.max(retrySecondsMin, ms / 1_000));
    const afterTold = (this.#latestMs.get(model) ?? 0) - nowMs + held.longestMs * turns.own;
    const roundingSeconds = 1e-6;
    return (
      seconds >= bounded(held.shortestMs * turns.least) - roundingSeconds &&
      seconds <= bounded(Math.max(held.longestMs * turns.most, afterTold)) + roundingSeconds
    );
  }
}

/**
 * Returns how many times the waiting requests fill the engine. Requests of `oldestMs` or before are over their bound,
 * and may count or not.
 */
export function turnsOf(
  { account, answers }: SimRequest,
  waiting: readonly SimRequest[],
  places: number,
  oldestMs: number,
): Turns {
  const turns = (requests: readonly Pick<SimRequest, "answers">[]) =>
    requests.reduce((sum, each) => sum + Math.min(each.answers, places), 0) / places;
  const ofAccount = waiting.filter((request) => request.sinceMs > oldestMs && request.account === account);
  return { least: turns(ofAccount), most: turns([...waiting, { answers }]), own: turns([{ answers }]) };
}
