/** Searches for the least number of slots of one group that meets the goals. */
import type { Trial } from "./trial.ts";

interface Least {
  /** The trial with the least number that meets the goals, or the last one if none does. */
  readonly best: Trial;
  /** The trial with one slot less, if there was one. */
  readonly below: Trial | undefined;
}

/**
 * Begins at the lower bound and goes down while the goals are met, or up until they are. The number found and the next
 * one both meet the goals, because more slots can make a wait longer. `tryWith` returns undefined if it was stopped.
 */
export async function leastSlots(
  atLeast: number,
  most: number,
  tryWith: (slots: number) => Promise<Trial | undefined>,
): Promise<Least | undefined> {
  const tried = new Map<number, Trial>();
  const meets = async (slots: number) => {
    if (!tried.has(slots)) {
      const trial = await tryWith(slots);
      if (!trial) throw stopped;
      tried.set(slots, trial);
    }
    return tried.get(slots)!.isMet;
  };
  const holds = async (slots: number) => (await meets(slots)) && (slots >= most || (await meets(slots + 1)));
  try {
    let [low, high] = [0, atLeast];
    for (let step = 1; !(await holds(high)); step *= 2) {
      if (high >= most) return { best: tried.get(high)!, below: tried.get(high - 1) };
      low = high;
      high = Math.min(most, high + step);
    }
    // The bound ignores that requests may wait, so it may be too high. Therefore fewer slots are tried too.
    while (high - low > 1) {
      const middle = low === 0 ? high - 1 : (low + high) >> 1;
      if (await holds(middle)) high = middle;
      else low = middle;
    }
    return { best: tried.get(high)!, below: tried.get(high - 1) };
  } catch (error) {
    if (error !== stopped) throw error;
    return undefined;
  }
}

const stopped = new Error("stopped");
