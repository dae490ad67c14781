/**
 * Measures how long this thread's event loop was busy at a time. It uses processor time, because wall time would
 * include other programs and waiting for locks.
 */
import { readFileSync } from "node:fs";

const lookMs = 5;

/** Starts measuring. Returns a function for the longest work between two turns so far, in milliseconds. Linux only. */
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

/** Returns the processor time of this thread only. */
function processorMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}
