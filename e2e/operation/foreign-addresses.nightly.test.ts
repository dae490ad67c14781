/** Sends the same requests in a network namespace that counts outgoing packets. There must be none. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("a whole cluster sends no packet to any other address (needs root, `ip` of iproute2 and `unshare`)", async () => {
  const script = join(import.meta.dirname, "network-namespace-process.ts");
  const { stdout } = await promisify(execFile)("unshare", ["-n", process.execPath, script]);
  expect(JSON.parse(stdout.trim().split("\n").at(-1)!)).toMatchObject({ answered: 20, sent: 0, countsWork: true });
});
