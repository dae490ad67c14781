/** Reads processes from Linux's `/proc`. `proc`: where it is mounted. */
import { readdir } from "node:fs/promises";

export interface ProcStat {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  /** Start time in clock ticks since boot. */
  readonly startTicks: number;
}

/**
 * Parses `/proc/PID/stat`. Field 2, the command, may contain spaces and brackets, so fields count from the last
 * bracket.
 */
export function parseStat(text: string): ProcStat {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0]!, parent: Number(fields[1]), group: Number(fields[2]), startTicks: Number(fields[19]) };
}

export async function readPids(proc: string): Promise<number[]> {
  return (await readdir(proc)).filter((name) => /^\d+$/.test(name)).map(Number);
}
