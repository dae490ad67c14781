/** `kill -9` of an agent in every state of its slot: an engine that was awake is found again and never restarted. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, isAlive, until } from "../cluster/cluster.ts";
import { SimNodeEngine, catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { askStream, type Seen } from "../cluster/stream-client.ts";

/** Slow enough for a kill to meet every state. */
const times = { "start-ms": 700, "sleep-ms": 700, "wake-ms": 700 };

let cluster: Cluster;
let apiKey: string;

beforeAll(async () => {
  cluster = await Cluster.start({
    catalogue: catalogueOf("model-a", "model-b"),
    agents: {
      "node-1": {
        slots: [
          {
            ...{ name: "a", minResidencySeconds: 0, drainOpenSeconds: 0.3, backoffSeconds: { min: 30, max: 30 } },
            engines: [simEngine("model-a", times), simEngine("model-b", times)],
          },
        ],
      },
    },
  });
  ({ apiKey } = await cluster.account());
});
afterAll(() => cluster[Symbol.asyncDispose]());

const [a, b] = ["model-a", "model-b"].map((model) => () => engineOf(model)) as [
  () => SimNodeEngine,
  () => SimNodeEngine,
];

function engineOf(model: string): SimNodeEngine {
  return new SimNodeEngine(join(cluster.directory, "node-1"), "a", model);
}

function ask(model: string, text = "sim:tokens=3"): Promise<Seen> {
  return askStream({ baseUrl: cluster.baseUrl, apiKey, model, text });
}

/** A long stream of which something has come. */
async function streaming(model: string): Promise<{ readonly ended: Promise<Seen> }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const question = { baseUrl: cluster.baseUrl, apiKey, model, text: "sim:tokens=500,itl=20" };
  const ended = askStream({ ...question, onPiece: () => resolve() });
  await Promise.race([promise, ended]);
  return { ended };
}

interface SlotSeen {
  readonly state: string;
  readonly active?: string;
}

async function slot(): Promise<SlotSeen> {
  const nodes = (await cluster.weiche("nodes")) as { slots: SlotSeen[] }[];
  return nodes[0]!.slots[0]!;
}

async function restartAgent(): Promise<void> {
  const agent = cluster.agents.get("node-1")!;
  agent.kill("SIGKILL");
  await agent.exited();
  await cluster.startAgent("node-1");
  await cluster.linked();
}

test("active, with a stream that runs: the stream breaks, the engine stays and serves on", async () => {
  expect(await ask("model-a")).toMatchObject({ ending: "whole" });
  const { pid } = a();
  const cut = await streaming("model-a");
  await restartAgent();
  expect(await cut.ended).toMatchObject({ ending: "error" });
  expect(await slot()).toMatchObject({ state: "active", active: "model-a" });
  expect(await ask("model-a")).toMatchObject({ ending: "whole" });
  expect(a().pid).toBe(pid);
});

test("draining: the engine that was awake is found again, and the other model has its turn", async () => {
  const { pid } = a();
  const cut = await streaming("model-a");
  const waiting = ask("model-b");
  await until("the drain", async () => (await slot()).state.startsWith("draining"));
  await restartAgent();
  expect([(await cut.ended).ending, (await waiting).ending]).toEqual(["error", "refused"]);
  expect(a().pid).toBe(pid);
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
  expect(isAlive(pid!), "it sleeps").toBe(true);
});

test("an engine that sleeps and one that is awake are both found again", async () => {
  const pids = [a().pid, b().pid];
  await restartAgent();
  expect(await slot()).toMatchObject({ state: "active", active: "model-b" });
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
  expect(await ask("model-a")).toMatchObject({ ending: "whole" });
  expect([a().pid, b().pid]).toEqual(pids);
});

test.each([
  ["stopping, while the old engine falls asleep", () => a().heading === "asleep", {}],
  ["starting, while the new engine wakes", () => b().heading === "awake", { state: "active", active: "model-b" }],
])("%s: no engine is restarted, never two are awake, and both models are served", async (_, isThere, found) => {
  await ask("model-a");
  const pids = [a().pid, b().pid];
  const waiting = ask("model-b");
  await until("the moment", isThere);
  await restartAgent();
  await waiting;
  expect(await slot()).toMatchObject(found);
  const states = await Promise.all([a().state(), b().state()]);
  expect(states.filter(({ sleeping }) => !sleeping).length).toBeLessThanOrEqual(1);
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
  expect(await ask("model-a")).toMatchObject({ ending: "whole" });
  expect([a().pid, b().pid]).toEqual(pids);
});

test("starting cold: the engine that comes up is found again", async () => {
  const { pid: before } = b();
  process.kill(before!, "SIGKILL");
  await until("it to be gone", () => b().pid === undefined);
  const waiting = ask("model-b");
  await until("it to start", () => b().pid !== undefined);
  const { pid } = b();
  await restartAgent();
  expect(await waiting).toMatchObject({ ending: "refused" });
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
  expect(b().pid).toBe(pid);
});

test("failed: what is left is cleared away, and the backoff is forgotten", async () => {
  process.kill(b().pid!, "SIGKILL");
  await until("the slot to have failed", async () => (await slot()).state === "failed");
  await restartAgent();
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
});
