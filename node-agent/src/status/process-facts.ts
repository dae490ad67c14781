/** What Linux says of a process: for how long it has run, and the memory that it holds. Elsewhere nothing is known. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

export interface ProcessFacts {
  readonly ageSeconds?: number;
  /** Resident, pinned weights included. What processes share counts for each. */
  readonly memoryBytes?: number;
}

/** The same on every Linux of ours. */
const ticksPerSecond = 100;

export async function processFacts(pid: number, proc = "/proc"): Promise<ProcessFacts> {
  const read = (...path: string[]) => readFile(join(proc, ...path), "utf8").catch(() => "");
  const [stat, status, uptime] = await Promise.all([
    read(String(pid), "stat"),
    read(String(pid), "status"),
    read("uptime"),
  ]);
  // The command's name, field 2, may hold spaces and brackets: fields are counted from its last bracket.
  const startTicks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
  const ageSeconds = Number.parseFloat(uptime) - startTicks / ticksPerSecond;
  const kibibytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  return {
    ageSeconds: Number.isFinite(ageSeconds) ? ageSeconds : undefined,
    memoryBytes: Number.isFinite(kibibytes) ? kibibytes * 1024 : undefined,
  };
}
