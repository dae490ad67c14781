/** Compares the working tree with the code of the committed report in three runs, or two if neither finds a regression. */
import { expect, test } from "vitest";
import { changeLines, compareCode } from "./code-comparison.ts";
import { checkOut } from "../../e2e/cluster/committed-code.ts";
import { committedReport } from "./committed-programs.ts";
import type { Change } from "./goals.ts";
import { findRegressions, needsThird } from "./regression.ts";

test("no ratio is more than 15 % worse than the committed report's code in two of three runs", async () => {
  using committed = await checkOut(committedReport());
  const runs: (readonly Change[])[] = [];
  for (const seed of [3, 4, 5]) {
    if (runs.length === 2 && !needsThird(runs)) break;
    const changes = await compareCode(committed, seed, console.log);
    console.log([`run ${seed}, worse than ${committed.commit} by a factor of:`, ...changeLines(changes)].join("\n"));
    runs.push(changes);
  }
  expect(findRegressions(runs)).toEqual([]);
}, 3_600_000);
