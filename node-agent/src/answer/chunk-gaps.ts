/** Histogram of the times between the output chunks of one answer. It stores nothing per chunk. */

/** Upper bounds of the buckets in milliseconds. One more bucket counts longer gaps. */
export const gapBoundsMs = [1, 2.5, 5, 10, 25, 50, 75, 100, 150, 200, 300, 500, 1_000, 2_500, 5_000, 10_000] as const;

export class ChunkGaps {
  readonly buckets = new Uint32Array(gapBoundsMs.length + 1);
  #chunks = 0;
  #firstMs = 0;
  #lastMs = 0;

  /** `chunks`: the total number of chunks so far. Chunks of one read have gaps of 0 between them. */
  take(chunks: number, nowMs: number): void {
    const came = chunks - this.#chunks;
    if (came <= 0) return;
    if (this.#chunks === 0) this.#firstMs = nowMs;
    else this.buckets[bucketOf(nowMs - this.#lastMs)]!++;
    this.buckets[0]! += came - 1;
    this.#chunks = chunks;
    this.#lastMs = nowMs;
  }

  get count(): number {
    return Math.max(0, this.#chunks - 1);
  }

  get sumMs(): number {
    return this.#lastMs - this.#firstMs;
  }
}

function bucketOf(gapMs: number): number {
  let bucket = 0;
  while (bucket < gapBoundsMs.length && gapMs > gapBoundsMs[bucket]!) bucket++;
  return bucket;
}
