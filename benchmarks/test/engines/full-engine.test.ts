/** More requests than the engine has places, of an official client that does not try again: all of them are answered. */
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../../cluster/cluster.ts";
import { catalogueOf } from "../../cluster/sim-node.ts";
import { startSimEngine, type SimEngine } from "../../sim-engine/sim-engine.ts";

const model = "narrow";
const sharing = "sharing";
const places = 4;
const requests = 50;
/** More than the largest package lets one account ask at once. */
const accounts = 3;

let engine: SimEngine;
let cluster: Cluster;
let clients: readonly OpenAI[];

beforeAll(async () => {
  engine = await startSimEngine({ model, dialect: "llama-server", maxRunning: places, ttftMs: 2, itlMs: 2 });
  const narrow = { model, dialect: "llama-server", launcher: "external", url: engine.origin };
  cluster = await Cluster.start({
    catalogue: catalogueOf(model, sharing),
    agents: { "node-1": { slots: [{ name: "a", engines: [narrow] }] } },
    prepare: (dataDir) => symlinkSync(process.execPath, join(dataDir, "llama-server")),
  });
  const keys: string[] = [];
  for (let count = 0; count < accounts; count++) keys.push((await cluster.account(`Customer-${count}`)).apiKey);
  clients = keys.map((apiKey) => new OpenAI({ apiKey, baseURL: cluster.baseUrl, maxRetries: 0 }));
  // The model is active: it is places that are waited for, not a switch.
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

test.each([1, 4])("50 requests at once for %i answers each, and the engine has 4 places", async (n) => {
  const asked = Array.from({ length: requests }, (_, index) => ask(clients[index % accounts]!, n));
  const refused = (await Promise.allSettled(asked)).filter(({ status }) => status === "rejected");
  expect(refused).toEqual([]);
  for (const { choices } of await Promise.all(asked)) {
    expect(choices.map(({ index }) => index)).toEqual(Array.from({ length: n }, (_, index) => index));
    expect(choices.every(({ finish_reason: finish }) => finish === "stop")).toBe(true);
  }
  expect(engine.state(), "none of them ever waited in the engine, where it cannot be taken back").toMatchObject({
    ...{ queued: 0, running: 0, waiting: 0 },
  });
});

test("a request for more answers than the engine has places is told how many there are", async () => {
  const error = await ask(clients[0]!, places + 1).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect(error).toMatchObject({ status: 400, param: "n", message: expect.stringContaining("at most 4:") });
});

/** Seen by its name to be llama-server: without `-np` its slots share one context. */
function sharingEngine(): object {
  const flags = ["--model", sharing, "--dialect", "llama-server", "--max-running", `${places}`, "--itl-ms", "2"];
  const program = [join(cluster.directory, "data/llama-server"), "benchmarks/sim-engine/main.ts", "--port", "{port}"];
  return {
    model: sharing,
    dialect: "llama-server",
    directory: join(import.meta.dirname, "../../.."),
    command: [...program, ...flags],
  };
}

test("a llama-server whose slots share one context is given one request at a time, and the log says so", async () => {
  const told = () => cluster.agents.get("node-1")!.output.filter((line) => line.includes("share one context"));
  for (const how of ["started", "taken over"]) {
    await cluster.agents.get("node-1")!.stop();
    await cluster.startAgent("node-1", { slots: [{ name: "b", engines: [sharingEngine()] }] });
    await cluster.linked();
    await Promise.all(Array.from({ length: 4 }, () => ask(clients[0]!, 1, sharing)));
    await until(`the agent to tell of it once ${how}`, () => told().length === 1);
    expect(JSON.parse(told()[0]!)).toMatchObject({ slot: "b", model: sharing, slots: places, used: 1 });
    const error = await ask(clients[0]!, 2, sharing).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 400, param: "n", message: expect.stringContaining("at most 1:") });
  }
});
