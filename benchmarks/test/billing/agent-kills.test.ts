/**
 * `kill -9` of an agent in every state of its slot and phase of a switch: an engine that was awake is found again and
 * never restarted. And of an engine while GPU memory is awaited, which a simulated nvidia-smi holds back.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { simulatedNvidiaSmi } from "@weiche/node-agent/test/engines/engines-on-host.ts";
import { askSocket } from "@weiche/shared/program/admin-socket.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, isAlive, reachableDirectory, until } from "../../cluster/cluster.ts";
import { SimNodeEngine, catalogueOf, simEngine } from "../../cluster/sim-node.ts";
import type { AgentStatus, SlotStatus } from "@weiche/node-agent/src/status/status.ts";
import { askStream, type Answer } from "../../cluster/api-client.ts";
import { dumpUsage } from "../../cluster/usage-dump.ts";

/** Slow enough for a kill to meet every state. */
const times = { "start-ms": 700, "sleep-ms": 700, "wake-ms": 700 };

const directory = reachableDirectory("weiche-kills-");
/** Faults that the next process of model-d begins with. */
const faultFile = join(directory, "faults");
/** An engine of the slot with a GPU needs so much, and holds a little more when it is awake. */
const needMebibytes = 68_000;
const awakeMebibytes = 70_000;

let cluster: Cluster;
let apiKey: string;
let gpu: Awaited<ReturnType<typeof simulatedNvidiaSmi>>;
const seen: Answer[] = [];

beforeAll(async () => {
  gpu = await simulatedNvidiaSmi(directory);
  const slot = { minResidencySeconds: 0, drainOpenSeconds: 1, backoffSeconds: { min: 30, max: 30 } };
  const memoryBytes = needMebibytes * 2 ** 20;
  cluster = await Cluster.start({
    catalogue: catalogueOf("model-a", "model-b", "model-c", "model-d"),
    environment: { PATH: `${directory}:${process.env["PATH"]}` },
    agents: {
      "node-1": {
        slots: [
          {
            ...{ ...slot, name: "a" },
            engines: [simEngine("model-a", times), simEngine("model-b", times)],
          },
          {
            ...{ ...slot, name: "gpu", gpus: [0], memorySeconds: { room: 60, spare: 60, return: 60 } },
            engines: [
              { ...simEngine("model-c"), memoryBytes },
              { ...simEngine("model-d", { "fault-file": faultFile }), memoryBytes },
            ],
          },
        ],
      },
    },
  });
  ({ apiKey } = await cluster.account());
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const [a, b] = ["model-a", "model-b"].map((model) => () => engineOf("a", model)) as [Engine, Engine];
const [c, d] = ["model-c", "model-d"].map((model) => () => engineOf("gpu", model)) as [Engine, Engine];
type Engine = () => SimNodeEngine;

function engineOf(slotName: string, model: string): SimNodeEngine {
  return new SimNodeEngine(join(cluster.directory, "node-1"), slotName, model);
}

async function ask(model: string, text = "sim:tokens=3", onPiece = () => {}): Promise<Answer> {
  const one = await askStream({ baseUrl: cluster.baseUrl, apiKey, model, text, onPiece });
  seen.push(one);
  return one;
}

/** A long stream of which something has come. */
async function streaming(model: string): Promise<{ readonly ended: Promise<Answer> }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const ended = ask(model, "sim:tokens=500,itl=20", resolve);
  await Promise.race([promise, ended]);
  return { ended };
}

/** Asks the agent itself, as its command asks. */
async function askAgent(...question: readonly [method: "GET" | "POST", path: string, body?: object]): Promise<unknown> {
  return (await askSocket(join(cluster.directory, "node-1/agent/admin.sock"), ...question)).body;
}

async function agentStatus(): Promise<AgentStatus> {
  return (await askAgent("GET", "/status")) as AgentStatus;
}

async function slot(named = "a"): Promise<SlotStatus> {
  return (await agentStatus()).slots.find(({ name }) => name === named)!;
}

function gpuSlot(): Promise<SlotStatus> {
  return slot("gpu");
}

async function maintenance(on: boolean): Promise<void> {
  await askAgent("POST", "/maintenance", { on });
}

async function held(state: "stopping" | "starting", phase: "memory" | "probe"): Promise<void> {
  await until(`${state}, ${phase}`, async () => {
    const found = await gpuSlot();
    return found.state === state && found.switching?.phase === phase;
  });
}

async function awakeOf(...engines: readonly SimNodeEngine[]): Promise<number> {
  const states = await Promise.all(engines.map((engine) => engine.state()));
  return states.filter(({ sleeping }) => !sleeping).length;
}

async function restartAgent(state: "live" | "maintenance" = "live"): Promise<void> {
  const agent = cluster.agents.get("node-1")!;
  agent.kill("SIGKILL");
  await agent.exited();
  await cluster.startAgent("node-1");
  await linked(state);
  await until("its slots to be taken over", async () =>
    (await agentStatus()).slots.every((one) => one.state !== "starting"),
  );
}

async function linked(state: "live" | "maintenance"): Promise<void> {
  await until(`the node to be ${state}`, async () => {
    const [node] = (await cluster.weiche("nodes")) as { readonly state: string }[];
    return node!.state === state;
  });
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

test.each(["draining-open", "draining-closed"])("%s: the engine that was awake is found again", async (state) => {
  expect(await ask("model-a")).toMatchObject({ ending: "whole" });
  const { pid } = a();
  const cut = await streaming("model-a");
  const waiting = ask("model-b");
  await until(state, async () => (await slot()).state === state);
  await restartAgent();
  expect(await slot()).toMatchObject({ state: "active", active: "model-a" });
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
  expect(await awakeOf(a(), b())).toBeLessThanOrEqual(1);
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
  expect(await ask("model-a")).toMatchObject({ ending: "whole" });
  expect([a().pid, b().pid]).toEqual(pids);
});

const [empty, activeB] = [{ state: "empty" }, { state: "active", active: "model-b" }];

/** Each begins with model-a awake; who waits for model-b is refused when maintenance begins. */
test.each([
  ["stopping, in maintenance", () => a().heading === "asleep", undefined, empty],
  ["starting, in maintenance", () => b().heading === "awake", undefined, activeB],
  ["active, in maintenance", () => b().heading === "awake", "active", activeB],
  ["empty, in maintenance", () => a().heading === "asleep", "empty", empty],
])("%s: maintenance goes on, and no engine is restarted", async (_, isThere, awaited, found) => {
  await ask("model-a");
  const pids = [a().pid, b().pid];
  const waiting = ask("model-b");
  await until("the moment", isThere);
  await maintenance(true);
  expect(await waiting).toMatchObject({ status: 503, error: { code: "maintenance" } });
  if (awaited) await until(awaited, async () => (await slot()).state === awaited);
  await restartAgent("maintenance");
  expect(await slot()).toMatchObject(found);
  expect(await ask("model-b")).toMatchObject({ status: 503, error: { code: "maintenance" } });
  await maintenance(false);
  await linked("live");
  expect(await ask("model-b")).toMatchObject({ ending: "whole" });
  expect(await ask("model-a")).toMatchObject({ ending: "whole" });
  expect([a().pid, b().pid]).toEqual(pids);
});

test("empty: both sleepers are found again, and none is woken until it is asked for", async () => {
  const pids = [a().pid, b().pid];
  const waiting = ask("model-b");
  await until("model-a to fall asleep", () => a().heading === "asleep");
  await maintenance(true);
  expect(await waiting).toMatchObject({ status: 503, error: { code: "maintenance" } });
  await until("the slot to be empty", async () => (await slot()).state === "empty");
  await maintenance(false);
  await restartAgent();
  expect(await slot()).toMatchObject({ ...empty, sleepers: ["model-b", "model-a"] });
  expect(await awakeOf(a(), b())).toBe(0);
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

/** Both begin with model-d asleep. */
const probes: [string, () => Promise<void>][] = [
  [
    "that has started",
    async () => {
      writeFileSync(faultFile, "hang:0*1");
      process.kill(d().pid!, "SIGKILL");
      await until("it to be gone", () => d().pid === undefined);
    },
  ],
  ["that was woken", () => d().setFaults("hang:0*1")],
];

test.each(probes)("the probe of an engine %s: the next agent proves it and takes it over", async (_, prepare) => {
  expect(await ask("model-d")).toMatchObject({ ending: "whole" });
  expect(await ask("model-c")).toMatchObject({ ending: "whole" });
  await prepare();
  const waiting = ask("model-d");
  await held("starting", "probe");
  rmSync(faultFile, { force: true });
  const pids = [c().pid, d().pid];
  await restartAgent();
  expect(await waiting).toMatchObject({ ending: "refused" });
  expect(await gpuSlot()).toMatchObject({ state: "active", active: "model-d" });
  expect(await awakeOf(c(), d())).toBe(1);
  expect(await ask("model-d")).toMatchObject({ ending: "whole" });
  expect(await ask("model-c")).toMatchObject({ ending: "whole" });
  expect([c().pid, d().pid]).toEqual(pids);
});

/** Simulates nvidia-smi: model-c holds so much memory, and model-d none. */
async function holdsMemory(mebibytes: number): Promise<void> {
  const pids = [c().pid, d().pid].flatMap((pid) => pid ?? []);
  await gpu.set(
    mebibytes,
    pids.map((pid) => [pid, pid === c().pid ? mebibytes : 0]),
  );
}

/** Model-d is asked for; what model-c holds is not free for it, and both engines sleep. Resolves in that phase. */
async function memoryAwaited(state: "stopping" | "starting"): Promise<{ readonly waiting: Promise<Answer> }> {
  const turns = async () => [(await ask("model-c")).ending, (await ask("model-d")).ending];
  expect(await turns()).toEqual(["whole", "whole"]);
  await holdsMemory(0); // a reading of model-d's turn has its pid from now on
  expect(await turns()).toEqual(["whole", "whole"]);
  await holdsMemory(awakeMebibytes);
  // Else model-d's memory is missed when it has left: by a reading of its turn that is older than this.
  await until("the agent to see it", async () => {
    const { gpus } = await agentStatus();
    return gpus?.[0]?.memoryUsedBytes === awakeMebibytes * 2 ** 20;
  });
  expect(await ask("model-c")).toMatchObject({ ending: "whole" });
  const waiting = ask("model-d");
  await held("stopping", "memory");
  if (state === "stopping") return { waiting };
  // Most has come back, so that model-c sleeps; the rest is missing for model-d.
  await holdsMemory(80_000 - needMebibytes + 1_000);
  await held("starting", "memory");
  return { waiting };
}

test.each(["stopping", "starting"] as const)(
  "%s, while memory is awaited: no engine wakes before it is there, also under the next agent",
  async (state) => {
    const { waiting } = await memoryAwaited(state);
    const pids = [c().pid, d().pid];
    await restartAgent();
    expect(await waiting).toMatchObject({ ending: "refused" });
    expect(await gpuSlot()).toMatchObject({ state: "empty" });
    const again = ask("model-d");
    await held("starting", "memory");
    expect(await awakeOf(c(), d())).toBe(0);
    await holdsMemory(0);
    expect(await again).toMatchObject({ ending: "whole" });
    expect(await awakeOf(c(), d())).toBe(1);
    expect(await ask("model-c")).toMatchObject({ ending: "whole" });
    expect([c().pid, d().pid]).toEqual(pids);
  },
);

test("an engine dies while its memory is awaited: it is cleared away, and who waits for the other one is served", async () => {
  const { waiting } = await memoryAwaited("stopping");
  const { pid } = c();
  process.kill(pid!, "SIGKILL");
  await until("it to be dead", () => !isAlive(pid!));
  await holdsMemory(0);
  expect(await waiting).toMatchObject({ ending: "whole" });
  await until("it to be cleared away", () => c().pid === undefined);
  expect(await ask("model-c")).toMatchObject({ ending: "whole" });
});

test("a sleeper dies while memory is awaited for its wake: it is started cold for the same request", async () => {
  const { waiting } = await memoryAwaited("starting");
  const { pid } = d();
  process.kill(pid!, "SIGKILL");
  await until("it to be dead", () => !isAlive(pid!));
  await holdsMemory(0);
  expect(await waiting).toMatchObject({ ending: "whole" });
  expect([d().pid === pid, await awakeOf(c(), d())]).toEqual([false, 1]);
});

test("through all of this each whole answer is recorded once, as its client saw it, and nothing else costs", async () => {
  const recorded = async () => {
    const records = (await dumpUsage(cluster)).filter(({ credits }) => credits > 0n);
    return records.map(({ requestId, completionTokens }) => `${requestId} ${completionTokens}`).toSorted();
  };
  const whole = seen.filter(({ ending }) => ending === "whole");
  const owed = whole.map(({ id, usage }) => `${id} ${usage!.completion_tokens}`).toSorted();
  await until("the last record", async () => (await recorded()).length >= owed.length);
  expect(await recorded()).toEqual(owed);
});
