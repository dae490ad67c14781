/** Measures how late this thread's event loop was, apart from the time in which other programs had the processor. */
import { readFileSync } from "node:fs";

const lookMs = 5;

/** Starts measuring; returns the longest delay so far, in milliseconds. Linux only. */
export function measureLoopLag(): () => number {
  let lagMs = 0;
  let [lastMs, lastWaitedMs] = [performance.now(), waitedMs()];
  setInterval(() => {
    const [nowMs, nowWaitedMs] = [performance.now(), waitedMs()];
    lagMs = Math.max(lagMs, nowMs - lastMs - (nowWaitedMs - lastWaitedMs));
    [lastMs, lastWaitedMs] = [nowMs, nowWaitedMs];
  }, lookMs);
  return () => lagMs;
}

/** Time in which this thread could have run and was not given a processor. */
function waitedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}
