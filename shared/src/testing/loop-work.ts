/**
 * Measures how long this thread's event loop was busy at a time. Processor time counts, since the clock also counts other
 * programs, and locks whose threads wait for a processor.
 */
import { readFileSync } from "node:fs";

const lookMs = 5;

/** Starts measuring; returns the longest work between two looks so far, in milliseconds. Linux only. */
export function measureLoopWork(): () => number {
  let longestMs = 0;
  let lastMs = processorMs();
  setInterval(() => {
    const nowMs = processorMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
  }, lookMs);
  return () => longestMs;
}

/** Time in which this thread, and no other of the process, had a processor. */
function processorMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}
