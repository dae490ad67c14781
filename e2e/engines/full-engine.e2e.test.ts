/**
 * Tests more requests than the engine has places, from an official client that does not retry. All of them are
 * answered.
 */
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { catalogueOf, SimNodeEngine, simEngineOf } from "../cluster/sim-node.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";
import { startSimEngine, type SimEngine } from "../sim-engine/sim-engine.ts";

const model = "narrow";
const sharing = "sharing";
/** A model and its adapter on one engine, with different factors. */
const [base, adapter] = ["base", "adapter"];
const tripled = catalogueOf(adapter).map((entry) => ({
  ...entry,
  factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 3 }],
}));
const places = 4;
const requests = 50;
/** Together these accounts may have more concurrent requests than one account of the largest package. */
const accounts = 3;

let engine: SimEngine;
let cluster: Cluster;
let clients: readonly OpenAI[];

beforeAll(async () => {
  engine = await startSimEngine({ model, dialect: "llama-server", maxRunning: places, ttftMs: 2, itlMs: 2 });
  const narrow = { model, dialect: "llama-server", launcher: "external", url: engine.origin };
  cluster = await Cluster.start({
    catalogue: [...catalogueOf(model, sharing, base), ...tripled],
    agents: { "node-1": { slots: [{ name: "a", engines: [narrow] }] } },
    prepare: (dataDir) => symlinkSync(process.execPath, join(dataDir, "llama-server")),
  });
  const keys: string[] = [];
  for (let count = 0; count < accounts; count++) keys.push((await cluster.account(`Customer-${count}`)).apiKey);
  clients = keys.map((apiKey) => new OpenAI({ apiKey, baseURL: cluster.baseUrl, maxRetries: 0 }));
  // The model is active, so that requests wait for places, not for a switch.
  await ask(clients[0]!, 1);
}, 90_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await engine?.[Symbol.asyncDispose]();
});

const ask = (client: OpenAI, n: number, of = model) =>
  client.chat.completions.create({
    model: of,
    n,
    messages: [{ role: "user", content: `sim:tokens=${Math.ceil(30 / n)} go on` }],
  });

test.each([1, 4])(
  "50 concurrent requests for %i answers each are all answered by an engine with 4 places [B2]",
  async (n) => {
    const asked = Array.from({ length: requests }, (_, index) => ask(clients[index % accounts]!, n));
    const refused = (await Promise.allSettled(asked)).filter(({ status }) => status === "rejected");
    expect(refused).toEqual([]);
    for (const { choices } of await Promise.all(asked)) {
      expect(choices.map(({ index }) => index)).toEqual(Array.from({ length: n }, (_, index) => index));
      expect(choices.every(({ finish_reason: finish }) => finish === "stop")).toBe(true);
    }
    expect(engine.state(), "no request waited in the engine, where the agent cannot withdraw it").toMatchObject({
      ...{ queued: 0, running: 0, waiting: 0 },
    });
  },
);

test("a request for more answers than the engine has places gets an error with the number of places", async () => {
  const error = await ask(clients[0]!, places + 1).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect(error).toMatchObject({ status: 400, param: "n", message: expect.stringContaining("at most 4:") });
});

/** The agent recognises llama-server by its name. Without `-np` its slots share one context. */
function sharingEngine(): object {
  const flags = ["--model", sharing, "--dialect", "llama-server", "--max-running", `${places}`, "--itl-ms", "2"];
  const program = [join(cluster.directory, "data/llama-server"), "e2e/sim-engine/main.ts", "--port", "{port}"];
  return {
    model: sharing,
    dialect: "llama-server",
    directory: join(import.meta.dirname, "../.."),
    command: [...program, ...flags],
  };
}

test("a llama-server whose slots share one context gets one request at a time, and the log reports it", async () => {
  const told = () => cluster.agents.get("node-1")!.output.filter((line) => line.includes("share one context"));
  for (const how of ["started", "taken over"]) {
    await cluster.agents.get("node-1")!.stop();
    await cluster.startAgent("node-1", { slots: [{ name: "b", engines: [sharingEngine()] }] });
    await cluster.linked();
    await Promise.all(Array.from({ length: 4 }, () => ask(clients[0]!, 1, sharing)));
    await until(`the agent to log it once ${how}`, () => told().length === 1);
    expect(JSON.parse(told()[0]!)).toMatchObject({ slot: "b", model: sharing, slots: places, used: 1 });
    const error = await ask(clients[0]!, 2, sharing).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 400, param: "n", message: expect.stringContaining("at most 1:") });
  }
});

test("an engine with two models serves both without a switch, with common places and a factor for each [B10 S17.7]", async () => {
  await cluster.agents.get("node-1")!.stop();
  const engines = [{ ...simEngineOf([base, adapter]), maxConcurrent: 2 }];
  await cluster.startAgent("node-1", { slots: [{ name: "c", engines }] });
  await cluster.linked();
  const [client] = clients as [OpenAI];
  const answered = await ask(client, 1, base);
  const started = new SimNodeEngine(join(cluster.directory, "node-1"), "c", base);
  const { pid } = started;

  const stop = new AbortController();
  const long = [base, adapter].map((of) =>
    client.chat.completions.create(
      { model: of, stream: true, messages: [{ role: "user", content: "sim:tokens=30000 go on" }] },
      { signal: stop.signal },
    ),
  );
  await Promise.all(long);
  const waiting = ask(client, 1, adapter);
  waiting.catch(() => {});
  interface Shown {
    readonly items: readonly { readonly model: string; readonly waitsFor?: string; readonly position?: number }[];
  }
  const live = async () => ((await cluster.weiche("requests", "--live")) as Shown).items;
  await until("the third request to wait", async () => (await live()).some(({ waitsFor }) => waitsFor !== undefined));
  expect((await live()).find(({ waitsFor }) => waitsFor)).toMatchObject({
    ...{ model: adapter, waitsFor: "place", position: 1 },
  });
  const slot = async () => ((await cluster.weiche("nodes")) as [{ slots: [{ waiting: number }] }])[0].slots[0];
  await until("the report of the waiter", async () => (await slot()).waiting === 1);
  expect(await slot()).toMatchObject({ active: base, activeModels: [base, adapter], running: 2, waiting: 1 });
  stop.abort();
  expect([answered.model, (await waiting).model]).toEqual([base, adapter]);
  expect(started.pid, "the engine was never restarted").toBe(pid);

  const records = async () => (await dumpUsage(cluster)).filter(({ model: of }) => of === base || of === adapter);
  await until("all four requests to be recorded", async () => (await records()).length === 4);
  for (const { model: of, promptTokens, completionTokens, credits } of await records())
    expect(credits).toBe(BigInt((of === base ? 1_000 : 3_000) * (promptTokens + completionTokens)));
});
