/** Finds ratios that are worse than with the committed report's code, in several runs because one run proves nothing. Pure. */
import type { Change } from "./goals.ts";

const worseMax = 1.15;

interface Regression {
  readonly id: string;
  readonly what: string;
  /** The median of each run. */
  readonly worse: readonly number[];
}

/** Returns the ratios that are more than 15 % worse in at least two runs. Each run has the same ratios. */
export function findRegressions(runs: readonly (readonly Change[])[]): Regression[] {
  return (runs[0] ?? []).flatMap(({ id, what }) => {
    const worse = runs.map((run) => run.find((change) => change.id === id)!.worse.median);
    return worse.filter((factor) => factor > worseMax).length >= 2 ? [{ id, what, worse }] : [];
  });
}

/** Returns whether a third run could find a regression that these two did not. */
export function needsThird(runs: readonly (readonly Change[])[]): boolean {
  return runs.some((run) => run.some(({ worse }) => worse.median > worseMax));
}
