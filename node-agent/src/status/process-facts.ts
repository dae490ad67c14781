/** Age and memory of a process, from Linux's `/proc`. On other systems both are unknown. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseStat } from "../host/proc.ts";

/** `USER_HZ`, which is 100 on all supported platforms. */
const ticksPerSecond = 100;

export async function processFacts(pid: number, proc = "/proc") {
  const read = (...path: string[]) => readFile(join(proc, ...path), "utf8").catch(() => "");
  const [stat, status, uptime] = await Promise.all([
    read(String(pid), "stat"),
    read(String(pid), "status"),
    read("uptime"),
  ]);
  const ageSeconds = Number.parseFloat(uptime) - parseStat(stat).startTicks / ticksPerSecond;
  const kibibytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  return {
    ageSeconds: Number.isFinite(ageSeconds) ? ageSeconds : undefined,
    /** Resident memory, pinned weights included. Shared memory counts for each process. */
    memoryBytes: Number.isFinite(kibibytes) ? kibibytes * 1024 : undefined,
  };
}
