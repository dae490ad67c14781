/**
 * The requests that ended last, which this router remembers for `weiche explain` and `weiche requests`. No content:
 * ids, times, and words of closed sets. Bounded by numbers of requests, which take about 400 bytes each.
 */
import type { FinishedRequest } from "./exchange.ts";

/** Requests of known keys: about 4 MB. */
export const requestsMax = 10_000;
/** Requests without one, kept apart, so that they cannot push the others out. */
export const strangersMax = 1_000;

export class RecentRequests {
  readonly #known = new Ring(requestsMax);
  readonly #strangers = new Ring(strangersMax);

  remember(facts: FinishedRequest): void {
    if (facts.accountId === undefined) this.#strangers.add(facts);
    else this.#known.add(facts);
  }

  /** The requests whose id begins with `idPrefix`, latest end first; at most `limit`. */
  find(idPrefix: string, limit: number): readonly FinishedRequest[] {
    return this.latest(({ requestId }) => requestId.startsWith(idPrefix), limit);
  }

  /** The requests that match, latest end first; at most `limit`. */
  latest(matches: (facts: FinishedRequest) => boolean, limit: number): readonly FinishedRequest[] {
    const found = [...this.#known.latest(matches, limit), ...this.#strangers.latest(matches, limit)];
    return found.toSorted((a, b) => b.endedAtMs - a.endedAtMs).slice(0, limit);
  }

  /** How many are remembered of those with a known key, and which of them ended first. */
  get extent(): { readonly requests: number; readonly oldest: FinishedRequest | undefined } {
    return { requests: this.#known.size, oldest: this.#known.oldest };
  }
}

class Ring {
  readonly #max: number;
  readonly #kept: FinishedRequest[] = [];
  /** Where the next one goes, once the ring is full. */
  #at = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#kept.length;
  }

  get oldest(): FinishedRequest | undefined {
    return this.#kept[this.#at] ?? this.#kept[0];
  }

  add(facts: FinishedRequest): void {
    if (this.#kept.length < this.#max) return void this.#kept.push(facts);
    this.#kept[this.#at] = facts;
    this.#at = (this.#at + 1) % this.#max;
  }

  latest(matches: (facts: FinishedRequest) => boolean, limit: number): FinishedRequest[] {
    const found: FinishedRequest[] = [];
    const { length } = this.#kept;
    for (let back = 1; back <= length && found.length < limit; back++) {
      const facts = this.#kept[(this.#at - back + length) % length]!;
      if (matches(facts)) found.push(facts);
    }
    return found;
  }
}
