/**
 * Starts the service for the tests of client libraries: five models on simulated vLLM and two on the embedded engine.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { Cluster, until } from "../cluster/cluster.ts";
import { simEngine } from "../cluster/sim-node.ts";

const root = join(import.meta.dirname, "../..");

/** The models and values of one engine, so that the same tests run with all of them. */
export interface Subject {
  readonly name: string;
  /** Reasons unless the request disables it. */
  readonly model: string;
  readonly embeddingModel: string;
  readonly dimensions: number;
  readonly contextTokens: number;
  /** A question that is answered with a few words. */
  readonly smallTalk: string;
  /** A question that is answered with a call of `get_weather`. */
  readonly weather: string;
  /** A question that is answered with a person as JSON, if the request demands JSON. */
  readonly person: string;
}

export const simulated: Subject = {
  name: "the simulated engine in vLLM's dialect",
  model: "general-3.8-27b",
  embeddingModel: "vl-embedding-2b",
  dimensions: 2_048,
  contextTokens: 32_768,
  smallTalk: "sim:tokens=12,reasoning=3 Who are you?",
  weather: "sim:tokens=4 What is the weather in Hamburg?",
  person: "sim:reasoning=2 Extract name, age and city as JSON: Marlene, aged 47, lives in Kassel.",
};

export const embedded: Subject = {
  name: "the embedded engine",
  model: "tiny-thinker",
  embeddingModel: "tiny-embed",
  dimensions: 192,
  contextTokens: 4_096,
  smallTalk: "Who are you?",
  weather: "What is the weather in Hamburg?",
  person: "Extract name, age and city as JSON: Marlene, aged 47, lives in Kassel.",
};

/** The JSON Schema of the parameters of `get_weather`. */
export const weatherParameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
} as const;

export interface Person {
  readonly name: string;
  readonly age: number;
  readonly city: string;
}

export const personSchema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 20 },
    age: { type: "integer" },
    city: { type: "string", enum: ["Kassel", "Bonn"] },
  },
  required: ["name", "age", "city"],
  additionalProperties: false,
} as const;

/** An image of one pixel. */
export const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==";

export type Key = keyof Service["keys"];

export interface Service extends AsyncDisposable {
  readonly baseUrl: string;
  readonly cluster: Cluster;
  readonly keys: {
    readonly all: string;
    /** May use only one model. */
    readonly restricted: string;
    /** A key that does not exist. */
    readonly wrong: string;
    readonly noPackage: string;
    /** A key of an account whose credits are used up. */
    readonly noQuota: string;
    /** A key of an account that may have five concurrent requests. */
    readonly fiveAtOnce: string;
    /** Like `all`, but of an account whose requests per minute no other test uses. */
    readonly patient: string;
  };
}

/** `router` contains settings that differ from the clusters' usual settings, which have no limit per address. */
export async function startService(router: object = {}): Promise<Service> {
  const cluster = await Cluster.start({
    router,
    catalogue: { models: [...models("deploy/catalogue.yaml"), ...models("deploy/demo/catalogue.yaml"), precious] },
    agents: { "node-1": { slots: slots() } },
  });
  try {
    const [all, restricted, noPackage, noQuota, fiveAtOnce, patient] = await Promise.all([
      keyOf(cluster, "All", "Business Plus"),
      keyOf(cluster, "Restricted", "Pro", "--model", "small-24b"),
      keyOf(cluster, "Without"),
      keyOf(cluster, "Spent", "Starter"),
      keyOf(cluster, "Five", "Starter"),
      keyOf(cluster, "Patient", "Business Plus"),
    ]);
    await spend(cluster, noQuota);
    const keys = { all, restricted, wrong: "sk-weiche-wrong", noPackage, noQuota, fiveAtOnce, patient };
    return { baseUrl: cluster.baseUrl, cluster, keys, [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

/** An expensive model. A few requests to it use up a small package. */
const precious = {
  id: "precious",
  category: "language",
  status: "Beta",
  contextTokens: 1_024,
  factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1_000 }],
};

function models(file: string): object[] {
  return (parse(readFileSync(join(root, file), "utf8")) as { models: object[] }).models;
}

function slots(): object[] {
  // Short times, because clients must be refused during a switch.
  const slot = (name: string, ...engines: object[]) => ({
    ...{ name, minResidencySeconds: 0.1, drainOpenSeconds: 0.1, whileSwitching: "refuse", engines },
  });
  return [
    slot("shared", simEngine("small-24b"), simEngine("coder-next")),
    slot("thinker", simEngine("general-3.8-27b")),
    slot("seer", simEngine("general-4-31b")),
    slot("vectors", simEngine("vl-embedding-2b", { context: 8_192 })),
    slot("precious", simEngine("precious", { context: 1_024 })),
    slot("tiny", embeddedEngine("tiny-thinker")),
    slot("tiny-vectors", embeddedEngine("tiny-embed", "--embeddings")),
  ];
}

function embeddedEngine(model: string, ...flags: string[]): object {
  const program = ["node", "node-agent/embedded-engine/src/main.ts", "--port", "{port}", "--alias", model];
  const command = [...program, "--model", "node-agent/models/weiche-tiny.gguf", ...flags];
  return { model, dialect: "openai", maxConcurrent: 4, directory: root, command };
}

async function keyOf(cluster: Cluster, name: string, packageName?: string, ...limits: string[]): Promise<string> {
  const email = `${name.toLowerCase()}@example.com`;
  const ordered = packageName === undefined ? [] : ["--package", packageName, "--yes"];
  const account = await cluster.weiche("account", "create", "--name", name, "--owner-email", email, ...ordered);
  const { ownerUserId } = account as { ownerUserId: string };
  const key = await cluster.weiche("key", "create", "--user", ownerUserId, "--name", "test", ...limits);
  return (key as { key: string }).key;
}

async function spend(cluster: Cluster, key: string): Promise<void> {
  const ask = async () => {
    const answer = await fetch(`${cluster.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "precious", messages: [{ role: "user", content: "sim:tokens=1000,itl=0" }] }),
    });
    await answer.text();
    return answer.status;
  };
  await ask();
  await until("the quota to be used up", async () => {
    await cluster.weiche("credits", "evaluate");
    return (await ask()) === 429;
  });
}
