/**
 * Stops router, agent and engine for a minute each (SIGSTOP) under load. The other node continues to serve, and
 * everything recovers without a second engine. Each whole answer is billed once, and nothing else.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { procTable } from "@weiche/node-agent/src/engines/launchers/process-table.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BilledLoad, clients } from "./billed-load.ts";
import { Cluster, enginePids, until } from "../cluster/cluster.ts";
import { simNodes } from "../cluster/sim-node.ts";

const stopMs = 60_000;
const nodes = ["node-1", "node-2"];

let cluster: Cluster;
let load: BilledLoad;

beforeAll(async () => {
  cluster = await Cluster.start(simNodes(["sim"], nodes));
  for (const node of nodes) await cluster.weicheAgent(node, "prewarm", "sim");
  await until("both engines to run", () => nodes.every((node) => engine(node) !== undefined));
  load = await BilledLoad.start(cluster);
});
afterAll(() => cluster[Symbol.asyncDispose]());

const engine = (node: string) => enginePids(join(cluster.directory, node)).get("a-sim");

async function engineProcesses(node: string): Promise<number> {
  return (await procTable.groupsWith(`WEICHE_ENGINE=${join(cluster.directory, node)}/`)).size;
}

/** Each case: the process, the least number of answers meanwhile, and the nodes whose engines stay unchanged. */
const cases: [string, () => number, number, readonly string[]][] = [
  ["the router", () => cluster.router.pid, 0, nodes],
  ["an agent", () => cluster.agents.get("node-1")!.pid, 20, nodes],
  ["an engine", () => engine("node-1")!, 20, ["node-2"]],
];

test.each(cases)(
  "if %s stops for a minute, the others continue to serve, and everything recovers by itself",
  async (_, pid, servedMin, staying) => {
    const before = staying.map(engine);
    const servedBefore = load.whole;
    const stopping = pid();
    process.kill(stopping, "SIGSTOP");
    try {
      await sleep(stopMs);
      expect(load.whole - servedBefore).toBeGreaterThanOrEqual(servedMin);
    } finally {
      process.kill(stopping, "SIGCONT");
    }
    await cluster.linked();
    await load.wholeAgain();
    for (const node of nodes)
      await until("the node to have one engine", async () => (await engineProcesses(node)) === 1);
    expect(staying.map(engine)).toEqual(before);
  },
  stopMs + 180_000,
);

test(
  "after all stops no answer is billed twice, only whole answers are billed, and none is lost",
  { timeout: 240_000 },
  async () => {
    const { free, ...wrong } = await load.finish();
    expect(wrong).toEqual({ wrong: [], lost: [] });
    expect(free).toBeLessThanOrEqual(2 * clients);
  },
);
