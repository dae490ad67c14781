/** Core dumps would contain a process's memory: prompts, answers, keys. */
import { writeFileSync } from "node:fs";

/**
 * Keeps the memory of this process and its later children out of core dumps. Linux only; elsewhere use `ulimit -c 0`.
 */
export function keepMemoryOutOfCoreFiles(): void {
  if (process.platform !== "linux") return;
  try {
    writeFileSync("/proc/self/coredump_filter", "0");
  } catch {
    // The kernel has no core dumps.
  }
}
