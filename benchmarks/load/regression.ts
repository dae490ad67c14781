/** Whether ratios got worse than those that are committed. Pure; a single run of a busy machine proves nothing. */
import type { GoalResult } from "./goals.ts";

export const worseMax = 0.15;

export interface Regression {
  readonly id: string;
  readonly what: string;
  readonly committed: number;
  readonly runs: readonly number[];
}

/** Ratios that are more than 15 % worse than the committed ones in at least two runs of three (of most, if there are others). */
export function findRegressions(
  committed: readonly GoalResult[],
  runs: readonly (readonly GoalResult[])[],
): Regression[] {
  return committed.flatMap(({ id, what, sense, isRatio, reached }) => {
    if (!isRatio || !reached) return [];
    const before = reached.median;
    const medians = runs.flatMap((run) => run.find((goal) => goal.id === id)?.reached?.median ?? []);
    const isWorse = (now: number) =>
      sense === "at most" ? now > before * (1 + worseMax) : now < before / (1 + worseMax);
    const worse = medians.filter(isWorse).length;
    return worse >= 2 && worse * 2 > medians.length ? [{ id, what, committed: before, runs: medians }] : [];
  });
}
