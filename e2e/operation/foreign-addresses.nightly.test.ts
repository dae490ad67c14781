/** Runs the same requests in a network namespace that counts outgoing packets: there must be none. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("a whole cluster sends not one packet to any other address (as root, with `ip` of iproute2 and `unshare`)", async () => {
  const script = join(import.meta.dirname, "network-namespace-process.ts");
  const { stdout } = await promisify(execFile)("unshare", ["-n", process.execPath, script]);
  expect(JSON.parse(stdout.trim().split("\n").at(-1)!)).toMatchObject({ answered: 20, sent: 0, countsWork: true });
});
