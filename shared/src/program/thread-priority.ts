/** The priority of threads that hash or measure: they and their children wait for the threads that serve streams. */
import { constants, getPriority, setPriority } from "node:os";

/** More than other threads of the program have: about a tenth of a core that they keep busy. */
const niceness = 10;

/** Lowers the priority of the calling thread, where the system allows it. */
export function yieldToOthers(): void {
  if (process.platform !== "linux") return;
  try {
    // On Linux, 0 is this thread alone.
    setPriority(0, Math.min(constants.priority.PRIORITY_LOW, getPriority(0) + niceness));
  } catch {
    // The thread works at normal priority where it may not lower it.
  }
}
