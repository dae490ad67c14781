/** Runs a node with two engines that share a slot, two that share GPU memory, and an agent that a test kills. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { simulatedNvidiaSmi } from "@weiche/node-agent/test/engines/engines-on-host.ts";
import { askSocket } from "@weiche/shared/program/admin-socket.ts";
import { afterAll, beforeAll, expect } from "vitest";
import { Cluster, reachableDirectory, until } from "../cluster/cluster.ts";
import { SimNodeEngine, catalogueOf, simEngine } from "../cluster/sim-node.ts";
import type { AgentStatus, SlotStatus } from "@weiche/node-agent/src/status/status.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";

/** Slow enough that a kill can hit every state. */
const times = { "start-ms": 700, "sleep-ms": 700, "wake-ms": 700 };

const directory = reachableDirectory("weiche-kills-");
/** The faults with which the next process of model-d begins. */
export const faultFile = join(directory, "faults");
/** The memory that an engine of the slot with a GPU needs. Awake it holds a little more. */
const needMebibytes = 68_000;
const awakeMebibytes = 70_000;

export let cluster: Cluster;
let apiKey: string;
let gpu: Awaited<ReturnType<typeof simulatedNvidiaSmi>>;
/** All answers. */
export const seen: Answer[] = [];

/** Starts the node for the tests of a file. Call it once per file. */
export function clusterToKill(): void {
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
}

export const [a, b] = ["model-a", "model-b"].map((model) => () => engineOf("a", model)) as [Engine, Engine];
export const [c, d] = ["model-c", "model-d"].map((model) => () => engineOf("gpu", model)) as [Engine, Engine];
type Engine = () => SimNodeEngine;

function engineOf(slotName: string, model: string): SimNodeEngine {
  return new SimNodeEngine(join(cluster.directory, "node-1"), slotName, model);
}

export async function ask(model: string, text = "sim:tokens=3", onPiece = () => {}): Promise<Answer> {
  const one = await askStream({ baseUrl: cluster.baseUrl, apiKey, model, text, onPiece });
  seen.push(one);
  return one;
}

/** Asks each of these models in turn and expects whole answers. */
export async function served(...models: readonly string[]): Promise<void> {
  for (const model of models) expect(await ask(model)).toMatchObject({ ending: "whole" });
}

/** Starts a long stream. Resolves with its first piece. */
export async function streaming(model: string): Promise<{ readonly ended: Promise<Answer> }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const ended = ask(model, "sim:tokens=500,itl=20", resolve);
  await Promise.race([promise, ended]);
  return { ended };
}

/** Reads the state from the agent as its command does. */
async function askAgent(...question: readonly [method: "GET" | "POST", path: string, body?: object]): Promise<unknown> {
  return (await askSocket(join(cluster.directory, "node-1/agent/admin.sock"), ...question)).body;
}

async function agentStatus(): Promise<AgentStatus> {
  return (await askAgent("GET", "/status")) as AgentStatus;
}

export async function slot(named = "a"): Promise<SlotStatus> {
  return (await agentStatus()).slots.find(({ name }) => name === named)!;
}

export function gpuSlot(): Promise<SlotStatus> {
  return slot("gpu");
}

export async function maintenance(on: boolean): Promise<void> {
  await askAgent("POST", "/maintenance", { on });
}

export async function held(state: "stopping" | "starting", phase: "memory" | "probe"): Promise<void> {
  await until(`${state}, ${phase}`, async () => {
    const found = await gpuSlot();
    return found.state === state && found.switching?.phase === phase;
  });
}

export async function awakeOf(...engines: readonly SimNodeEngine[]): Promise<number> {
  const states = await Promise.all(engines.map((engine) => engine.state()));
  return states.filter(({ sleeping }) => !sleeping).length;
}

export async function restartAgent(state: "live" | "maintenance" = "live"): Promise<void> {
  const agent = cluster.agents.get("node-1")!;
  agent.kill("SIGKILL");
  await agent.exited();
  await cluster.startAgent("node-1");
  await linked(state);
  await until("its slots to be taken over", async () =>
    (await agentStatus()).slots.every((one) => one.state !== "starting"),
  );
}

export async function linked(state: "live" | "maintenance"): Promise<void> {
  await until(`the node to be ${state}`, async () => {
    const [node] = await cluster.nodes();
    return node!.state === state;
  });
}

/** Lets the simulated nvidia-smi report this memory for model-c and none for model-d. */
export async function holdsMemory(mebibytes: number): Promise<void> {
  const pids = [c().pid, d().pid].flatMap((pid) => pid ?? []);
  await gpu.set(
    mebibytes,
    pids.map((pid) => [pid, pid === c().pid ? mebibytes : 0]),
  );
}

/** Asks for model-d while model-c's memory is not free. Resolves when both engines sleep. */
export async function memoryAwaited(state: "stopping" | "starting"): Promise<{ readonly waiting: Promise<Answer> }> {
  const turns = async () => [(await ask("model-c")).ending, (await ask("model-d")).ending];
  expect(await turns()).toEqual(["whole", "whole"]);
  await holdsMemory(0); // readings of model-d's turn contain its pid from now on
  expect(await turns()).toEqual(["whole", "whole"]);
  await holdsMemory(awakeMebibytes);
  // A reading from before model-d's turn would lack its memory.
  await until("the agent to read the memory", async () => {
    const { gpus } = await agentStatus();
    return gpus?.[0]?.memoryUsedBytes === awakeMebibytes * 2 ** 20;
  });
  expect(await ask("model-c")).toMatchObject({ ending: "whole" });
  const waiting = ask("model-d");
  await held("stopping", "memory");
  if (state === "stopping") return { waiting };
  // Most memory is free again, so that model-c sleeps. The rest is missing for model-d.
  await holdsMemory(80_000 - needMebibytes + 1_000);
  await held("starting", "memory");
  return { waiting };
}
