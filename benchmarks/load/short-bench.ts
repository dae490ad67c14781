/**
 * The short bench that tells by night whether a ratio got worse: only what ratios are made of, in many short rounds. Its
 * result is committed as `baseline.json`; a whole bench has rounds of another length, and too few of them to compare with.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { writeResult, type Machine } from "../cluster/result.ts";
import { programs } from "../peers/all.ts";
import { isCompared, judgeGoals, type GoalResult } from "./goals.ts";
import { runBench } from "./run-bench.ts";
import { short } from "./statistics.ts";
import type { BenchResult } from "./report.ts";

const scenarios = ["json-64", "stream-64x10", "stream-256x20", "first-byte", "json-beside-6000"];

export interface Baseline {
  readonly date: string;
  readonly machine: Machine;
  /** Ratios only, each over the rounds of all runs. */
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

/** Two runs, since a program also differs a little from start to start; writes `baseline.json` and a page. */
export async function recordBaseline(say: (line: string) => void): Promise<void> {
  const runs = [await runShortBench(1, say), await runShortBench(2, say)];
  const samples = runs.flatMap((run, n) =>
    run.samples.map((sample) => ({ ...sample, round: sample.round + n * run.options.rounds })),
  );
  const goals = ratiosOf(judgeGoals(samples));
  const each = runs.map((run) => new Map(ratiosOf(run.goals).map(({ id, reached }) => [id, reached!.median])));
  writeResult("baseline", runs[0]!.machine, { goals }, [
    "What the short benches of `npm run nightly` are compared with: two short benches, the median of the ratios of all rounds.",
    "",
    "| ratio | median | all rounds | run by run |",
    "|---|---|---|---|",
    ...goals.map(({ id, what, reached }) => {
      const { median, min, max } = reached!;
      const medians = each.map((run) => (run.has(id) ? short(run.get(id)!) : "–")).join(", ");
      return `| ${what} | ${short(median)} | ${short(min)}–${short(max)} | ${medians} |`;
    }),
  ]);
}

/** The youngest baseline that is committed. */
export function readBaseline(): Baseline {
  const results = join(import.meta.dirname, "../results");
  const files = readdirSync(results).map((name) => join(results, name, "baseline.json"));
  const youngest = files
    .filter((file) => existsSync(file))
    .toSorted((a, b) => a.localeCompare(b))
    .at(-1);
  if (youngest === undefined) throw new Error("no baseline is committed: npm run bench -- --baseline");
  return JSON.parse(readFileSync(youngest, "utf8")) as Baseline;
}

/** The ratios that were measured. */
export function ratiosOf(goals: readonly GoalResult[]): readonly GoalResult[] {
  return goals.filter(({ isRatio, reached }) => isRatio && reached);
}
