/** Describes the machine of a measurement, and makes tables and quantiles of what was measured. */
import { execFileSync } from "node:child_process";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
  readonly commit: string;
  /** The load average of the minute before the benchmark. */
  readonly loadBefore: number;
  /** Other programs that have used more than a tenth of a core since their start. */
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

export function machineText({ cores, cpu, memoryGiB, node, commit }: Omit<Machine, "loadBefore">): string {
  return `${cores} cores of ${cpu}, ${memoryGiB} GiB, Node.js ${node}, commit ${commit}`;
}

/** Describes the machine's load by other programs before the benchmark. */
export function loadText({ loadBefore, alsoRunning }: Machine): string {
  return `Load before: ${loadBefore}; also running: ${alsoRunning.join(", ") || "nothing of note"}.`;
}

/** Returns today's date, such as `2026-11-22`. */
export function today(): string {
  return Temporal.Now.plainDateISO().toString();
}

/** Returns the lines of a Markdown table. */
export function markdownTable(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  return [line(heads), `|${"---|".repeat(heads.length)}`, ...rows.map(line)];
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Returns quantiles, rounded to a tenth. */
export function quantiles(values: readonly number[]): Quantiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** Rounds to a tenth. */
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
