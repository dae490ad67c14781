/** The comparison with what is committed; by night it is made, with three short benches. */
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { judgeGoals, type GoalResult } from "./goals.ts";
import { findRegressions } from "./regression.ts";
import type { BenchResult } from "./report.ts";
import { runBench } from "./run-bench.ts";

describe("a regression", () => {
  const at = (median: number, id = "chunk-nginx"): GoalResult[] => [
    { ...judgeGoals([]).find((goal) => goal.id === id)!, reached: { median, min: median, max: median, rounds: 5 } },
  ];

  test("is more than 15 % worse in two runs of three", () => {
    expect(findRegressions(at(1), [at(1.16), at(1), at(1.2)])).toMatchObject([
      { id: "chunk-nginx", runs: [1.16, 1, 1.2] },
    ]);
  });
  test("is not a single bad run", () => {
    expect(findRegressions(at(1), [at(3), at(1.14), at(0.9)])).toEqual([]);
  });
  test("is a lower value where more is better", () => {
    expect(findRegressions(at(5, "json-portkey"), [at(4, "json-portkey"), at(4.2, "json-portkey")])).toHaveLength(1);
    expect(findRegressions(at(5, "json-portkey"), [at(9, "json-portkey"), at(8, "json-portkey")])).toEqual([]);
  });
  test("is never seen in absolute values, which belong to a machine, nor in what a run left out", () => {
    expect(findRegressions(at(10, "memory-5000"), [at(100, "memory-5000"), at(100, "memory-5000")])).toEqual([]);
    expect(findRegressions(at(1), [[], [], at(9)])).toEqual([]);
  });
});

/** The youngest whole bench that is committed; undefined: none yet. */
function committed(): BenchResult | undefined {
  const results = join(import.meta.dirname, "../results");
  const files = readdirSync(results).map((name) => join(results, name, "results.json"));
  const youngest = files
    .filter((file) => existsSync(file))
    .toSorted((a, b) => a.localeCompare(b))
    .at(-1);
  return youngest === undefined ? undefined : (JSON.parse(readFileSync(youngest, "utf8")) as BenchResult);
}

/** By day there are none to compare. */
const runsCount = process.env["WEICHE_NIGHTLY"] ? 3 : 0;

const nightly = {
  ...{ quick: true, rounds: 3, scenarios: ["json-64", "stream-64x10", "stream-256x20", "first-byte"] },
  programs: ["weiche", "weiche-plain", "bare-router", "nginx", "portkey", "hops-h2", "hops-h1-tls"],
};

test("by night no ratio is more than 15 % worse than the committed one in two runs of three", async () => {
  const before = committed();
  const runs: (readonly GoalResult[])[] = [];
  for (let seed = 1; before && seed <= runsCount; seed++)
    runs.push((await runBench({ ...nightly, seed }, console.log)).goals);
  expect(findRegressions(before?.goals ?? [], runs)).toEqual([]);
}, 3_600_000);
