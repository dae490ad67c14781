/** Runs the API server in its own process, so that a test can measure its memory and the work of its event loop. */
import { measureLoopWork } from "@weiche/shared/testing/loop-work.ts";
import { asId } from "@weiche/shared/ids.ts";
import { caller, startApi } from "./api-harness.ts";

const heldUntil = Number(process.argv[2]);
const api = await startApi();
const { promise: enough, resolve } = Promise.withResolvers<void>();
for (const account of ["b", "c", "d"]) api.keys.set(`sk-${account}`, caller({ accountId: asId(account) }));
let sent = 0;
// A body stays in memory until this number of bodies has arrived.
api.nodes.script = () => {
  api.nodes.sent.length = 0;
  if (++sent === heldUntil) resolve();
  return { held: enough, chunks: ['{"ok":true}'] };
};

const workMs = measureLoopWork();
process.on("message", () => {
  const { maxRSS } = process.resourceUsage();
  process.send!({ rssBytes: maxRSS * 1024, workMs: workMs(), failures: api.failures.map(String) });
});
process.on("disconnect", () => process.exit());
process.send!({ port: api.port });
