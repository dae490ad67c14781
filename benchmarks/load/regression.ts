/** Whether ratios got worse than those of the committed report's code. Pure; one run of a busy machine proves nothing. */
import type { Change } from "./goals.ts";

export const worseMax = 1.15;

export interface Regression {
  readonly id: string;
  readonly what: string;
  /** The median of each run. */
  readonly worse: readonly number[];
}

/** Ratios that are more than 15 % worse in at least two of the runs. Each run has the same ratios. */
export function findRegressions(runs: readonly (readonly Change[])[]): Regression[] {
  return (runs[0] ?? []).flatMap(({ id, what }) => {
    const worse = runs.map((run) => run.find((change) => change.id === id)!.worse.median);
    return worse.filter((factor) => factor > worseMax).length >= 2 ? [{ id, what, worse }] : [];
  });
}

/** Whether a third run could still find what these two did not. */
export function needsThird(runs: readonly (readonly Change[])[]): boolean {
  return runs.some((run) => run.some(({ worse }) => worse.median > worseMax));
}
