/** Rendezvous hashing: everybody who sees the same candidates chooses the same one for a key. Pure. */

/** Returns the candidate with the largest weight, and the first of several. */
export function maximum<Candidate extends object>(
  candidates: readonly Candidate[],
  weight: (candidate: Candidate) => number,
): Candidate {
  let best = candidates[0]!;
  let most = -Infinity;
  for (const candidate of candidates) {
    const its = weight(candidate);
    if (its > most) [best, most] = [candidate, its];
  }
  return best;
}

/** Returns the weight of these names together, below 2^32: FNV-1a over the names, spread by murmur3's finalizer. */
export function weightOf(...names: readonly string[]): number {
  let hash = 0x811c9dc5;
  for (const part of names) {
    for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 0x01000193);
    hash = Math.imul(hash ^ 0xff, 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
