/** Distributions of lengths in equal parts, which take a small part of the memory of their probabilities. */
import type { Random } from "@weiche/shared/random.ts";

/** The mean of each 256th of all lengths, in their order. */
export type Quantiles = Float32Array;

const parts = 256;
const entry = /(\d+): ([\d.e+-]+)/g;

/** Reads probabilities such as `{12: 0.25, 13: 0.75}`. Returns undefined if there are none. */
export function quantilesOf(text: string): Quantiles | undefined {
  const entries = Array.from(text.matchAll(entry), ([, length, share]) => [Number(length), Number(share)] as const);
  const sum = entries.reduce((total, [, share]) => total + share, 0);
  if (!(sum > 0)) return undefined;
  const quantiles = new Float32Array(parts);
  let place = 0;
  for (const [length, share] of entries.toSorted(([a], [b]) => a - b)) {
    const end = Math.min(parts, place + (share / sum) * parts);
    while (place < end) {
      const next = Math.min(end, Math.floor(place) + 1);
      quantiles[Math.floor(place)]! += length * (next - place);
      place = next;
    }
  }
  return quantiles;
}

/** Rounds at random, so that the mean of all lengths is kept. */
export function lengthFrom(quantiles: Quantiles, random: Random): number {
  return Math.max(1, Math.floor(quantiles[random.below(parts)]! + random.next()));
}
