/**
 * Lets router and agent run out of memory under load, repeatedly. Each ends and is started again like systemd does.
 * Engines continue, no answer is billed twice, and only whole answers are billed.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BilledLoad, clients } from "./billed-load.ts";
import { Cluster, enginePids, reachableDirectory } from "../cluster/cluster.ts";
import { preload } from "../cluster/preloaded-file.ts";
import { simNodes } from "../cluster/sim-node.ts";

const rounds = 4;
const heapMiB = 160;
const directory = reachableDirectory("weiche-memory-");
let cluster: Cluster;
let load: BilledLoad;

beforeAll(async () => {
  const eater = preload(join(import.meta.dirname, "memory-eater.ts"), directory);
  cluster = await Cluster.start({
    ...simNodes(["sim"]),
    environment: { NODE_OPTIONS: `--max-old-space-size=${heapMiB} ${eater}` },
  });
  load = await BilledLoad.start(cluster);
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

test.each(Array.from({ length: rounds }, (_, round) => round))(
  "round %i: a program that runs out of memory ends and comes back, and the engine continues",
  async () => {
    const engines = enginePids(join(cluster.directory, "node-1"));
    writeFileSync(join(directory, "node-agent"), "");
    expect(await cluster.agents.get("node-1")!.exited()).toBe("SIGABRT");
    await cluster.startAgent("node-1");
    await cluster.linked();
    await load.wholeAgain();
    writeFileSync(join(directory, "router"), "");
    expect(await cluster.router.exited()).toBe("SIGABRT");
    await cluster.startRouter();
    await cluster.linked();
    await load.wholeAgain();
    expect(enginePids(join(cluster.directory, "node-1"))).toEqual(engines);
  },
);

test("after all rounds no answer is billed twice, only whole answers are billed, and none is lost", async () => {
  const { free, ...wrong } = await load.finish();
  expect(wrong).toEqual({ wrong: [], lost: [] });
  expect(free).toBeLessThanOrEqual(2 * clients * rounds);
});
