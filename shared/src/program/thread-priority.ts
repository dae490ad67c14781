/** The priority of threads that hash or measure: they and their children wait for the threads that serve streams. */
import { setPriority } from "node:os";

/** About a tenth of a core that other threads keep busy. */
const niceness = 10;

/** Lowers the priority of the calling thread, where the system allows it. */
export function yieldToOthers(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, niceness); // on Linux, 0 is this thread alone
  } catch {
    // The thread works at normal priority where it may not lower it.
  }
}
