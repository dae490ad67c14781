/** Core files hold what was in a process's memory: prompts, answers, keys. */
import { writeFileSync } from "node:fs";

/**
 * From now on a core file of this process, and of every process that it starts, holds nothing of its memory, wherever the
 * system puts core files. On Linux; elsewhere the shell's `ulimit -c 0` keeps them away.
 */
export function keepMemoryOutOfCoreFiles(): void {
  if (process.platform !== "linux") return;
  try {
    writeFileSync("/proc/self/coredump_filter", "0");
  } catch {
    // a kernel without core files
  }
}
