/** `kill -9` of an agent while one of its engines loads: the next agent serves the other slots, and the load goes on. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { LoneAgent, type LoneAnswer } from "../cluster/lone-agent.ts";
import { SimNodeEngine, simEngine } from "../cluster/sim-node.ts";
import { until } from "../cluster/cluster.ts";

const startMs = 5_000;
let agent: LoneAgent;

beforeAll(async () => {
  agent = await LoneAgent.start({
    models: ["ready", "loading"],
    slots: [
      { name: "fast", engines: [simEngine("ready")] },
      { name: "slow", engines: [simEngine("loading", { "start-ms": startMs })] },
    ],
  });
});
afterAll(() => agent[Symbol.asyncDispose]());

const engineOf = (slot: string, model: string) => new SimNodeEngine(agent.directory, slot, model);
const ask = (model: string): Promise<LoneAnswer> => agent.chat(model, "sim:tokens=3 hello");
const whole = { status: 200, ending: "complete" };

test("what is ready serves at once, and what loads becomes active without a second start", async () => {
  expect(await ask("ready")).toMatchObject(whole);
  const lost = ask("loading").catch((error: Error) => error);
  const [ready, loading] = [engineOf("fast", "ready"), engineOf("slow", "loading")];
  await until("it to load", () => loading.pid !== undefined);
  const beganMs = performance.now();
  const pids = [ready.pid, loading.pid];

  await agent.restart();
  await lost;
  let served: LoneAnswer | undefined;
  void ask("ready").then((answer) => (served = answer));
  const waiting = ask("loading");
  await until("the other slot to serve", () => served !== undefined, 1_000);
  expect(served).toMatchObject(whole);
  const loadingMs = performance.now() - beganMs;
  expect(loadingMs, "it still loads").toBeLessThan(startMs);

  const slow = (await agent.status()).slots.find(({ name }) => name === "slow")!;
  expect(slow).toMatchObject({ state: "starting", active: "loading", waiting: { loading: 1 } });
  expect(slow.switching!.seconds).toBeGreaterThan(loadingMs / 1000 - 0.5);
  expect(await waiting).toMatchObject(whole);
  expect([ready.pid, loading.pid]).toEqual(pids);
});
