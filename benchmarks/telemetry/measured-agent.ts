/**
 * An agent that measures how late its own event loop is. `MEASURED_TELEMETRY` selects the reader of the machine:
 * `none`; `threads` as in production; `library-thread`, the library's readings in a thread; or `loop`, the library's
 * readings on the event loop. At SIGUSR2 it writes the measurements since the last SIGUSR2 to the file `MEASURED_FILE`.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { createAgent } from "@weiche/node-agent/src/context.ts";
import { loadAgentConfig } from "@weiche/node-agent/src/config/config.ts";
import { readEveryMs } from "@weiche/node-agent/src/host/machine-telemetry.ts";
import { quantiles } from "../../e2e/cluster/measurement.ts";
import { readWithLibrary } from "./library-readings.ts";

const lookMs = 5;
const { MEASURED_TELEMETRY: mode, MEASURED_FILE: file, WEICHE_AGENT_CONFIG: config } = process.env;

const agent = await createAgent(loadAgentConfig(config!, process.env), process.env, {
  measuresMachine: mode === "threads",
});
if (mode === "library-thread") new Worker(new URL("./library-thread.ts", import.meta.url));
if (mode === "loop") {
  await readWithLibrary();
  setInterval(() => void readWithLibrary(), readEveryMs);
}

let latenesses: number[] = [];
let [lastMs, lastWaitedMs] = [performance.now(), waitedMs()];
setInterval(() => {
  const [nowMs, nowWaitedMs] = [performance.now(), waitedMs()];
  latenesses.push(Math.max(0, nowMs - lastMs - lookMs - (nowWaitedMs - lastWaitedMs)));
  [lastMs, lastWaitedMs] = [nowMs, nowWaitedMs];
}, lookMs);

process.on("SIGUSR2", () => {
  const sorted = latenesses.toSorted((a, b) => a - b);
  const p999 = sorted[Math.floor(0.999 * sorted.length)] ?? NaN;
  const said = { ...quantiles(sorted), p999, samples: sorted.length, rssBytes: process.memoryUsage().rss };
  latenesses = [];
  writeFileSync(`${file}.new`, JSON.stringify(said));
  renameSync(`${file}.new`, file!);
});
process.on("SIGTERM", () => void agent.close({ stopEngines: true }).then(() => process.exit(0)));
agent.log.info({ listen: agent.listen }, "measured agent listening");

/** Time in which this thread was ready to run, but other programs had the processor. */
function waitedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}
