/** Lowers the priority of threads that hash or measure, so that threads with streams go first. */
import { constants, getPriority, setPriority } from "node:os";

/** A nice value above the other threads'. If those keep a core busy, this thread gets about a tenth of it. */
const niceness = 10;

/** Lowers the calling thread's priority, if the system allows it. */
export function yieldToOthers(): void {
  if (process.platform !== "linux") return;
  try {
    // On Linux, 0 means only this thread.
    setPriority(0, Math.min(constants.priority.PRIORITY_LOW, getPriority(0) + niceness));
  } catch {
    // If this is not allowed, the thread keeps its normal priority.
  }
}
