/**
 * Fills the router's disk so that its database cannot even start. Requests continue from the key cache and usage waits
 * at the node. All usage is committed within 30 s after there is room. Needs root to mount a small file system.
 */
import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isPostmaster, readPostmaster } from "@weiche/router/src/db/postmaster.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";

const sizeMiB = 256;
const mountable = canMount();
let cluster: Cluster;
let apiKey: string;
const dataDir = () => join(cluster.directory, "data");
const databaseCluster = () => join(dataDir(), "router/database/cluster");
const seen: Answer[] = [];

beforeAll(async () => {
  if (!mountable) return;
  cluster = await Cluster.start({
    ...simNodes(["sim"]),
    prepare: (directory) =>
      void spawnSync("mount", ["-t", "tmpfs", "-o", `size=${sizeMiB}m,mode=711`, "none", directory]),
  });
  ({ apiKey } = await cluster.account());
});
afterAll(async () => {
  if (!mountable) return;
  spawnSync("umount", ["--lazy", dataDir()]);
  await cluster[Symbol.asyncDispose]();
});

async function ask(): Promise<Answer> {
  const one = await askStream({ baseUrl: cluster.baseUrl, apiKey, model: "sim", text: "sim:tokens=5" });
  seen.push(one);
  return one;
}

async function waiting(): Promise<number> {
  const { listen } = cluster.agents.get("node-1")!;
  const text = await (await fetch(`http://${listen["ops"]}/metrics`)).text();
  return Number(/^weiche_agent_outbox_records (\d+)$/m.exec(text)![1]);
}

/** Fills the disk to the last block. */
function fill(): void {
  const ballast = Buffer.alloc(64 << 10);
  try {
    for (;;) writeFileSync(join(dataDir(), "ballast"), ballast, { flag: "a" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}

test.skipIf(!mountable)(
  "on a full disk requests continue and usage waits, and it is committed within 30 s once there is room",
  { timeout: 120_000 },
  async () => {
    expect(await ask()).toMatchObject({ ending: "whole" });
    fill();
    const postmaster = () => readPostmaster(databaseCluster())?.pid ?? 0;
    process.kill(postmaster(), "SIGKILL");
    const untilMs = performance.now() + 15_000;
    while (performance.now() < untilMs) {
      expect(await ask()).toMatchObject({ status: 200, ending: "whole" });
      await sleep(200); // stays below the package's limit per minute
    }
    expect(await waiting()).toBeGreaterThan(10);
    // The router starts the database repeatedly, and it ends each time.
    await until("the database to have no room", () => !isPostmaster(postmaster(), databaseCluster()));
    rmSync(join(dataDir(), "ballast"));
    await until("all usage to be committed", async () => (await waiting()) === 0, 30_000);
    const paid = (await dumpUsage(cluster)).filter(({ outcome }) => outcome !== "broken");
    expect(new Set(paid.map(({ requestId }) => requestId))).toEqual(new Set(seen.map(({ id }) => id)));
    expect(paid).toHaveLength(seen.length);
    expect(await ask()).toMatchObject({ ending: "whole" });
  },
);

/** Returns whether this system allows mounts. If not, prints that the test does not run. */
function canMount(): boolean {
  const tried = spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/mnt"]);
  if (tried.status === 0 && process.getuid?.() === 0) return true;
  console.warn("not run: a database on a full disk (needs root, to mount a small file system)");
  return false;
}
