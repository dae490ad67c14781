/** The comparison with what is committed, with three short benches; with two, if no ratio is worse in either. */
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { GoalResult } from "./goals.ts";
import { findRegressions, needsThird } from "./regression.ts";
import type { BenchResult } from "./report.ts";
import { runBench, warmSeconds } from "./run-bench.ts";

/** The youngest whole bench that is committed. */
function committed(): BenchResult {
  const results = join(import.meta.dirname, "../results");
  const files = readdirSync(results).map((name) => join(results, name, "results.json"));
  const youngest = files
    .filter((file) => existsSync(file))
    .toSorted((a, b) => a.localeCompare(b))
    .at(-1);
  if (youngest === undefined) throw new Error("no whole bench is committed: npm run bench");
  return JSON.parse(readFileSync(youngest, "utf8")) as BenchResult;
}

const seeds = [1, 2, 3];
const short = {
  ...{
    quick: true,
    rounds: 3,
    warmSeconds: warmSeconds.whole,
    scenarios: ["json-64", "stream-64x10", "stream-256x20", "first-byte"],
  },
  programs: ["weiche", "weiche-plain", "bare-router", "nginx", "portkey", "hops-h2", "hops-h1-tls"],
};

test("no ratio is more than 15 % worse than the committed one in two runs of three", async () => {
  const before = committed();
  const runs: (readonly GoalResult[])[] = [];
  for (const seed of seeds) {
    if (runs.length === 2 && !needsThird(before.goals, runs)) break;
    runs.push((await runBench({ ...short, seed }, console.log)).goals);
  }
  expect(findRegressions(before.goals, runs)).toEqual([]);
}, 3_600_000);
