/**
 * The short bench that tells by night whether a ratio got worse: only what ratios are made of, in many short rounds. Its
 * result is committed as `baseline.json`; a whole bench has rounds of another length, and too few of them to compare with.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { resultsDirectory, writeResult, type Machine } from "../cluster/result.ts";
import { programs } from "../peers/all.ts";
import { isCompared, type GoalResult } from "./goals.ts";
import { baselineOf, medianOf } from "./regression.ts";
import { runBench } from "./run-bench.ts";
import { short } from "./statistics.ts";
import type { BenchResult } from "./report.ts";

const scenarios = ["json-64", "stream-64x10", "stream-256x20", "first-byte", "json-beside-6000"];

export interface Baseline {
  readonly date: string;
  readonly machine: Machine;
  /** Ratios only, each over the medians of several runs. */
  readonly goals: readonly GoalResult[];
}

/**
 * Nine minutes. On the machines seen so far single ratios of one program to another moved by 15 % from round to round, on a
 * scale of seconds: ten rounds of 1.5 s say more than five of 3 s.
 */
export async function runShortBench(seed: number, say: (line: string) => void): Promise<BenchResult> {
  const needed = programs.filter(({ name }) => scenarios.some((scenario) => isCompared(scenario, name)));
  return await runBench(
    {
      ...{ quick: true, rounds: 10, warmSeconds: 20, seed, onlyCompared: true, scenarios },
      programs: needed.map(({ name }) => name),
    },
    say,
  );
}

/** Three quarters of an hour. */
const baselineRuns = 5;

/** Several runs, since ratios also differ from run to run; writes `baseline.json` and a page. */
export async function recordBaseline(say: (line: string) => void): Promise<void> {
  const results: BenchResult[] = [];
  while (results.length < baselineRuns) results.push(await runShortBench(results.length + 1, say));
  const runs = results.map(({ goals }) => goals);
  const goals = baselineOf(runs);
  writeResult("baseline", results[0]!.machine, { goals }, [
    `What the short benches of \`npm run nightly\` are compared with: the median of ${runs.length} short benches.`,
    "",
    "| ratio | median | run by run |",
    "|---|---|---|",
    ...goals.map(({ id, what, reached }) => {
      const medians = runs.flatMap((run) => medianOf(id, run) ?? []).map(short);
      return `| ${what} | ${short(reached!.median)} | ${medians.join(", ")} |`;
    }),
  ]);
}

/** The youngest baseline that is committed. */
export function readBaseline(): Baseline {
  const files = readdirSync(resultsDirectory).map((name) => join(resultsDirectory, name, "baseline.json"));
  const youngest = files
    .filter((file) => existsSync(file))
    .toSorted((a, b) => a.localeCompare(b))
    .at(-1);
  if (youngest === undefined) throw new Error("no baseline is committed: npm run bench -- --baseline");
  return JSON.parse(readFileSync(youngest, "utf8")) as Baseline;
}
