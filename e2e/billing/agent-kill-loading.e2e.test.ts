/** Kills an agent while one of its engines loads. The next agent serves the other slots, and the engine continues to load. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LoneAgent } from "../cluster/lone-agent.ts";
import { SimNodeEngine, simEngine } from "../cluster/sim-node.ts";
import { reachableDirectory, until } from "../cluster/cluster.ts";

const directory = reachableDirectory("weiche-loading-");
/** The slow engine loads while this file exists. */
const gate = join(directory, "gate");
let agent: LoneAgent;

beforeAll(async () => {
  writeFileSync(gate, "");
  agent = await LoneAgent.start({
    models: ["ready", "loading"],
    slots: [
      { name: "fast", engines: [simEngine("ready")] },
      { name: "slow", engines: [simEngine("loading", { "start-ms": 1, "load-while": gate })] },
    ],
  });
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const engineOf = (slot: string, model: string) => new SimNodeEngine(agent.directory, slot, model);
const ask = (model: string) => agent.chat(model, "sim:tokens=3 hello");
const whole = { status: 200, ending: "complete" };

const slow = async () => (await agent.status()).slots.find(({ name }) => name === "slow")!;

/** Waits up to a second for an answer, because the next agent opens its data connections a moment after its link. */
async function servedAtOnce(model: string): Promise<void> {
  const answered = async () => (await ask(model).catch(() => undefined))?.ending === whole.ending;
  await until(`${model} to be served`, answered, 1_000);
}

test("ready engines serve at once, and a loading engine becomes active without a second start [C3]", async () => {
  expect(await ask("ready")).toMatchObject(whole);
  const lost = ask("loading").catch((error: Error) => error);
  const [ready, loading] = [engineOf("fast", "ready"), engineOf("slow", "loading")];
  await until("the engine to load", () => loading.pid !== undefined);
  const beganMs = performance.now();
  const pids = [ready.pid, loading.pid];

  await agent.restart();
  await lost;
  await servedAtOnce("ready");
  const waiting = ask("loading");
  const loadingMs = performance.now() - beganMs;
  await until("the request to wait", async () => (await slow()).waiting["loading"] === 1);
  const { state, active, switching } = await slow();
  expect([state, active]).toEqual(["starting", "loading"]);
  expect(switching!.seconds).toBeGreaterThan(loadingMs / 1000 - 0.5);
  rmSync(gate);
  expect(await waiting).toMatchObject(whole);
  expect([ready.pid, loading.pid]).toEqual(pids);
});

test("a slot whose engine does not answer the next agent delays no other slot", async () => {
  const { pid } = engineOf("slow", "loading");
  process.kill(pid!, "SIGSTOP");
  await agent.restart();
  await servedAtOnce("ready");
  expect((await slow()).state).toBe("starting");
});
