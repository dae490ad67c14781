/**
 * How long requests of a model held their places lately. Estimates from it how long running requests will hold theirs.
 */

export interface HeldTimes {
  /** Moving average. */
  readonly meanMs: number;
  /** At most `recentMax` times, the newest last. */
  readonly recentMs: readonly number[];
}

const recentMax = 64;
/** The number of times from which their distribution is used. */
const knownFrom = 8;
const newestWeight = 0.1;

export function heldFor(before: HeldTimes | undefined, ms: number): HeldTimes {
  const { meanMs, recentMs } = before ?? { meanMs: ms, recentMs: [] };
  return { meanMs: meanMs + newestWeight * (ms - meanMs), recentMs: [...recentMs.slice(1 - recentMax), ms] };
}

/** Steps of the search below. Each halves the error. */
const steps = 10;

/**
 * Returns the time after which all requests have ended with even chance. `agesMs`: for how long each has run. A request
 * is expected to last as the recent requests did that ran at least as long. The average is used while few times are
 * known, and for a request that ran longer than all of them.
 */
export function lastEndMs({ meanMs, recentMs }: HeldTimes, agesMs: readonly number[]): number {
  if (agesMs.length === 0) return 0;
  if (recentMs.length < knownFrom) return meanMs;
  const usualMs = Math.max(1, meanMs);
  const times = recentMs.toSorted((one, other) => one - other);
  const longer = (ms: number) => times.length - firstAbove(times, ms);
  /** The probability that a request that has run for `ageMs` runs for another `ms`. */
  const lasting = (ageMs: number, ms: number) => {
    if (longer(ageMs) === 0) return Math.exp(-ms / usualMs);
    const isLongest = (atMs: number) => Math.exp(-atMs / usualMs);
    return (longer(ageMs + ms) + isLongest(ageMs + ms)) / (longer(ageMs) + isLongest(ageMs));
  };
  const isOver = (ms: number) => agesMs.reduce((chance, ageMs) => chance * (1 - lasting(ageMs, ms)), 1) >= 1 / 2;
  let [low, high] = [0, usualMs];
  while (!isOver(high)) [low, high] = [high, 2 * high];
  for (let step = 0; step < steps; step++) {
    const middle = (low + high) / 2;
    if (isOver(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** Returns the index of the first of the sorted times that exceeds `ms`. */
function firstAbove(times: readonly number[], ms: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! > ms) high = middle;
    else low = middle + 1;
  }
  return low;
}
