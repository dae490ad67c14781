/** The API server in a process of its own, so that its memory and the lag of its event loop can be measured. */
import { measureLoopLag } from "@weiche/shared/testing/loop-lag.ts";
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

const lagMs = measureLoopLag();
process.on("message", () => {
  const { maxRSS } = process.resourceUsage();
  process.send!({ rssBytes: maxRSS * 1024, lagMs: lagMs(), failures: api.failures.map(String) });
});
process.on("disconnect", () => process.exit());
process.send!({ port: api.port });
