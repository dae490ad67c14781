/**
 * The latest requests that ended on this router, for `weiche explain` and `weiche requests`. They contain ids, times
 * and words of closed sets, but no content. A request takes about 400 bytes, and the number of requests is bounded.
 */
import type { FinishedRequest } from "./exchange.ts";

/** Requests of known keys. They take about 4 MB. */
export const requestsMax = 10_000;
/** Requests without a known key. They are kept separately, so that they cannot replace the others. */
export const strangersMax = 1_000;

export class RecentRequests {
  readonly #known = new Ring(requestsMax);
  readonly #strangers = new Ring(strangersMax);

  remember(facts: FinishedRequest): void {
    if (facts.accountId === undefined) this.#strangers.add(facts);
    else this.#known.add(facts);
  }

  /** Finds at most `limit` requests whose id begins with `idPrefix`, latest end first. */
  find(idPrefix: string, limit: number): readonly FinishedRequest[] {
    return this.latest(({ requestId }) => requestId.startsWith(idPrefix), limit);
  }

  /** Lists at most `limit` requests that match, latest end first. */
  latest(matches: (facts: FinishedRequest) => boolean, limit: number): readonly FinishedRequest[] {
    const found = [...this.#known.latest(matches, limit), ...this.#strangers.latest(matches, limit)];
    return found.toSorted((a, b) => b.endedAtMs - a.endedAtMs).slice(0, limit);
  }

  /** The number of kept requests with a known key, and the earliest ended request. */
  get extent(): { readonly requests: number; readonly oldest: FinishedRequest | undefined } {
    return { requests: this.#known.size, oldest: this.#known.oldest };
  }
}

class Ring {
  readonly #max: number;
  readonly #kept: FinishedRequest[] = [];
  /** The position of the next request when the ring is full. */
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
