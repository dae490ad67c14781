/** Where a benchmark leaves what it measured: JSON and a short page in `benchmarks/results/<date>-<machine>/`. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, hostname, loadavg, totalmem } from "node:os";
import { join } from "node:path";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
  readonly commit: string;
  /** Of the last minute, before the benchmark began: what else ran. */
  readonly loadBefore: number;
  /** Other programs that have used more than a tenth of a core since they started. */
  readonly alsoRunning: readonly string[];
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim(),
    loadBefore: round(loadavg()[0]!),
    alsoRunning: busyPrograms(),
  };
}

/** The results of all days and machines. */
export const resultsDirectory = join(import.meta.dirname, "../results");

/** Those of this machine on one day. */
export function resultsOf(date: string): string {
  return join(resultsDirectory, `${date}-${hostname()}`);
}

/** Prints the page and writes it, with the JSON beside it. */
export function writeResult(name: string, machine: Machine, result: object, page: readonly string[]): void {
  const { cpu, cores, memoryGiB, node, commit, loadBefore, alsoRunning } = machine;
  const date = Temporal.Now.plainDateISO().toString();
  const directory = resultsOf(date);
  const others = alsoRunning.length === 0 ? "nothing else of note" : alsoRunning.join(", ");
  const about = `${cores} cores of ${cpu}, ${memoryGiB} GiB, Node.js ${node}, commit ${commit}. Load before: ${loadBefore}; also running: ${others}.`;
  const text = [`# ${name}, ${date}`, "", about, "", ...page, ""].join("\n");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, `${name}.json`), `${JSON.stringify({ date, machine, ...result }, null, 2)}\n`);
  writeFileSync(join(directory, `${name}.md`), text);
  console.log(`${text}\n${directory}`);
}

export function quantiles(values: readonly number[]): {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
} {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function busyPrograms(): string[] {
  const lines = execFileSync("ps", ["-eo", "pid,pcpu,comm", "--sort=-pcpu", "--no-headers"], { encoding: "utf8" });
  return lines
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([pid, percent]) => Number(percent) > 10 && Number(pid) !== process.pid)
    .map(([, percent, program]) => `${program} (${percent} %)`)
    .slice(0, 8);
}
