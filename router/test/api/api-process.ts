/** The API server in a process of its own, so that its memory and the lag of its event loop can be measured. */
import { readFileSync } from "node:fs";
import { startApi } from "./api-harness.ts";

const heldUntil = Number(process.argv[2]);
const api = await startApi();
const { promise: enough, resolve } = Promise.withResolvers<void>();
let sent = 0;
// A body stays in memory until so many have come.
api.nodes.script = () => {
  api.nodes.sent.length = 0;
  if (++sent === heldUntil) resolve();
  return { held: enough, chunks: ['{"ok":true}'] };
};

/** Time in which this thread could have run and was not given a processor: other programs' fault, not lag of ours. */
function waitedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}
let lagMs = 0;
let [lastMs, lastWaitedMs] = [performance.now(), waitedMs()];
setInterval(() => {
  const [nowMs, nowWaitedMs] = [performance.now(), waitedMs()];
  lagMs = Math.max(lagMs, nowMs - lastMs - (nowWaitedMs - lastWaitedMs));
  [lastMs, lastWaitedMs] = [nowMs, nowWaitedMs];
}, 5);
process.on("message", () => {
  const { maxRSS } = process.resourceUsage();
  process.send!({ rssBytes: maxRSS * 1024, lagMs, failures: api.failures.map(String) });
});
process.on("disconnect", () => process.exit());
process.send!({ port: api.port });
