/** The comparison with what is committed, with three short benches; with two, if no ratio is worse in either. */
import { expect, test } from "vitest";
import type { GoalResult } from "./goals.ts";
import { findRegressions, medianOf, needsThird, ratiosOf } from "./regression.ts";
import { readBaseline, runShortBench } from "./short-bench.ts";

const seeds = [3, 4, 5];
const ids = (goals: readonly GoalResult[]) => goals.map(({ id }) => id);

test("no ratio is more than 15 % worse than the committed one in two runs of three", async () => {
  const { goals: before } = readBaseline();
  const runs: (readonly GoalResult[])[] = [];
  for (const seed of seeds) {
    if (runs.length === 2 && !needsThird(before, runs)) break;
    const ratios = ratiosOf((await runShortBench(seed, console.log)).goals);
    expect(ids(ratios), "a program is missing here: see the first lines").toEqual(ids(before));
    runs.push(ratios);
  }
  for (const { id, reached } of before)
    console.log(
      id,
      reached?.median,
      runs.map((run) => medianOf(id, run)),
    );
  expect(findRegressions(before, runs)).toEqual([]);
}, 3_600_000);
