/** Whether ratios got worse than those that are committed. Pure; a single run of a busy machine proves nothing. */
import type { GoalResult } from "./goals.ts";
import { spreadOf } from "./statistics.ts";

export const worseMax = 0.15;

export interface Regression {
  readonly id: string;
  readonly what: string;
  readonly committed: number;
  readonly runs: readonly number[];
}

/** The ratios that were measured. */
export function ratiosOf(goals: readonly GoalResult[]): readonly GoalResult[] {
  return goals.filter(({ isRatio, reached }) => isRatio && reached);
}

/** The ratios of several runs as one: `reached` is the spread of the runs' medians. */
export function baselineOf(runs: readonly (readonly GoalResult[])[]): GoalResult[] {
  return ratiosOf(runs[0] ?? []).map(({ isMet: _isMet, ...goal }) => ({
    ...goal,
    reached: spreadOf(runs.flatMap((run) => medianOf(goal.id, run) ?? []))!,
  }));
}

/** Ratios that are more than 15 % worse than the committed ones in at least two runs of three (of most, if there are others). */
export function findRegressions(
  committed: readonly GoalResult[],
  runs: readonly (readonly GoalResult[])[],
): Regression[] {
  return ratiosOf(committed).flatMap((goal) => {
    const { id, what, reached } = goal;
    const medians = runs.flatMap((run) => medianOf(id, run) ?? []);
    const worse = runs.filter((run) => isWorse(goal, run)).length;
    return worse >= 2 && worse * 2 > medians.length ? [{ id, what, committed: reached!.median, runs: medians }] : [];
  });
}

/** Whether a third run could still find what these two did not. */
export function needsThird(committed: readonly GoalResult[], runs: readonly (readonly GoalResult[])[]): boolean {
  return ratiosOf(committed).some((goal) => runs.some((run) => isWorse(goal, run)));
}

function isWorse({ id, sense, reached }: GoalResult, run: readonly GoalResult[]): boolean {
  const now = medianOf(id, run);
  if (!reached || now === undefined) return false;
  const before = reached.median;
  return sense === "at most" ? now > before * (1 + worseMax) : now < before / (1 + worseMax);
}

export function medianOf(id: string, run: readonly GoalResult[]): number | undefined {
  return run.find((goal) => goal.id === id)?.reached?.median;
}
