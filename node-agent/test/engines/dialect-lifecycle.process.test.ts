/** Readiness, sleep and wake against small servers that answer like the engines. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { afterEach, expect, test } from "vitest";
import { dialects } from "../../src/engines/dialects/all.ts";
import type { DialectName, EngineEndpoint } from "../../src/engines/engine.ts";
import { readRecording } from "../exchange/recordings.ts";

const model = asId<ModelId>("m");
const never = new AbortController().signal;
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  }
});

type Pages = Record<string, [status: number, body?: unknown] | "hangs" | "floods">;

/** Serves these pages, and 404 elsewhere. Returns the requested paths. */
async function engine(pages: Pages): Promise<{ endpoint: EngineEndpoint; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    request.on("end", () => {
      asked.push(`${request.method} ${request.url}`);
      const page = pages[request.url!] ?? [404];
      if (page === "hangs") return;
      if (page === "floods") return flood(response, asked);
      const body = page[1] ?? "";
      response.writeHead(page[0]).end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { endpoint: { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }, asked };
}

/** Sends a valid answer after 64 MiB of white space, more than a socket buffers. */
function flood(response: ServerResponse, asked: string[]): void {
  response.on("close", () => asked.push(response.writableFinished ? "the page was read to its end" : "given up"));
  Readable.from([...Array<string>(1_024).fill(" ".repeat(64 << 10)), JSON.stringify({ ...models, ...token })]).pipe(
    response.writeHead(200),
  );
}

const models = {
  object: "list",
  data: [
    { id: "other", max_model_len: 7 },
    { id: "m", max_model_len: 100 },
  ],
};
const token = { choices: [{ text: "x", finish_reason: "length" }] };
const ready: Pages = { "/health": [200], "/v1/models": [200, models], "/v1/completions": [200, token] };
const names = Object.keys(dialects) as DialectName[];

async function prove(name: DialectName, pages: Pages) {
  const { endpoint, asked } = await engine(pages);
  await dialects[name].readiness(endpoint, model, never, () => asked.push("loaded"));
  return asked;
}

test("an engine is ready when it is healthy, lists the model and has generated a token", async () => {
  for (const name of names) {
    const asked = await prove(name, ready);
    expect(new Set(asked.slice(0, 2))).toEqual(new Set(["GET /health", "GET /v1/models"]));
    expect(asked.slice(2)).toEqual(["loaded", "POST /v1/completions"]);
  }
});

/** Returns a recorded page of llama-server. */
function recorded(name: string): [status: number, body: unknown] {
  const { status, body } = readRecording(name);
  return [status, JSON.parse(body)];
}

test("a recorded llama-server is ready under each of its names and reports its context and its number of slots", async () => {
  const { endpoint } = await engine({
    "/health": [200, { status: "ok" }],
    "/v1/models": recorded("02-models"),
    "/v1/completions": recorded("50-completions"),
    "/props": recorded("141-sleeping-props"),
  });
  const ready = (name: string) => dialects["llama-server"].readiness(endpoint, asId<ModelId>(name), never);
  const facts = { windowTokens: 512, parallelMax: 1 };
  expect(await ready("tiny")).toEqual(facts);
  expect(await ready("tiny-alias")).toEqual(facts);
  await expect(ready("tiny-other")).rejects.toThrow("does not name tiny-other");
});

test("llama-server reports how many requests it runs at once", async () => {
  const { endpoint } = await engine({
    ...ready,
    "/v1/models": [200, { data: [{ id: "m" }] }],
    "/props": [200, { total_slots: 4 }],
  });
  expect(await dialects["llama-server"].readiness(endpoint, model, never)).toEqual({ parallelMax: 4 });
});

test.each<[DialectName, Pages, number | undefined]>([
  ["vllm", ready, 100],
  ["openai", ready, 100],
  ["llama-server", { "/props": [200, { default_generation_settings: { n_ctx: 512 } }] }, 512],
  ["openai", { "/info": [200, { max_input_length: 384 }] }, 384],
  ["vllm", {}, undefined],
  ["llama-server", {}, undefined],
  ["llama-server", { "/props": [200, { default_generation_settings: { n_ctx: "512" } }] }, undefined],
  ["llama-server", { "/props": [501] }, undefined],
])("the context of an engine with %s is read: %j", async (name, pages, windowTokens) => {
  const unsaid: Pages = { ...ready, "/v1/models": [200, { data: [{ id: "m" }] }] };
  const { endpoint } = await engine({ ...unsaid, ...pages });
  expect(await dialects[name].readiness(endpoint, model, never)).toEqual(
    windowTokens === undefined ? {} : { windowTokens },
  );
});

test.each([true, false])("TEI reports whether it cuts long texts: %s", async (cuts) => {
  const info = { max_input_length: 384, auto_truncate: cuts };
  const { endpoint } = await engine({ ...ready, "/v1/models": [404], "/info": [200, info] });
  expect(await dialects.openai.readiness(endpoint, model, never)).toEqual({ windowTokens: 384, cutsTexts: cuts });
});

test("an engine for embeddings is probed with an embedding", async () => {
  const embeds = { "/v1/completions": [500], "/v1/embeddings": [200, { data: [{ embedding: [1] }] }] } as Pages;
  for (const name of names) expect(await prove(name, { ...ready, ...embeds })).toContain("POST /v1/embeddings");
});

const unready: [name: string, pages: Pages, reason: string][] = [
  ["bad health", { ...ready, "/health": [503] }, "/health answers 503"],
  [
    "a key that the agent does not have",
    { ...ready, "/v1/models": recorded("133-key-models-closed") },
    "/v1/models answers 401",
  ],
  ["another model", { ...ready, "/v1/models": [200, { data: [{ id: "other" }] }] }, "does not name m"],
  ["no token", { ...ready, "/v1/completions": [200, { choices: [] }] }, "no token (200) and no embedding (404)"],
  ...[{ text: "", finish_reason: "abort" }, { text: "x", finish_reason: "error" }, { text: "" }, "x"].map(
    (choice): [string, Pages, string] => [
      `the choice ${JSON.stringify(choice)}`,
      { ...ready, "/v1/completions": [200, { choices: [choice], usage: { completion_tokens: 0 } }] },
      "no token (200) and no embedding (404)",
    ],
  ),
];
test.each([
  { choices: [{ text: "", finish_reason: "length" }] },
  { choices: [{ text: "", finish_reason: "stop" }], usage: { completion_tokens: 1 } },
  { choices: [{ text: "", finish_reason: null }], usage: { completion_tokens: 1 } },
  { choices: [{ text: "x" }] },
])("%j counts as a token", async (answer) => {
  for (const name of names) {
    const asked = await prove(name, { ...ready, "/v1/completions": [200, answer] });
    expect(asked).not.toContain("POST /v1/embeddings");
  }
});
test.each(unready)("%s is not ready, in any dialect", async (_name, pages, reason) => {
  for (const name of names) await expect(prove(name, pages)).rejects.toThrow(reason);
});

test("only an openai engine may lack health and the list of models", async () => {
  const { "/v1/completions": completions } = ready;
  await prove("openai", { "/v1/completions": completions! });
  for (const name of ["vllm", "llama-server"] as const)
    await expect(prove(name, { "/v1/completions": completions! })).rejects.toThrow("/health answers 404");
});

test("a probe ends without a listener, and by its signal", async () => {
  await expect(dialects.vllm.readiness({ origin: "http://127.0.0.1:1" }, model, never)).rejects.toThrow("ECONNREFUSED");
  const { endpoint } = await engine({ ...ready, "/v1/completions": "hangs" });
  const stop = new AbortController();
  const proof = dialects.vllm.readiness(endpoint, model, stop.signal);
  stop.abort(new Error("changed my mind"));
  await expect(proof).rejects.toThrow("changed my mind");
});

test("vLLM sleeps when it reports sleep and is healthy", async () => {
  const asleep: Pages = {
    "/sleep?level=1&mode=wait": [200],
    "/is_sleeping": [200, { is_sleeping: true }],
    "/health": [200],
  };
  const { endpoint, asked } = await engine(asleep);
  await dialects.vllm.sleep!(endpoint, 1, never);
  expect(asked[0]).toBe("POST /sleep?level=1&mode=wait");
  expect(new Set(asked.slice(1))).toEqual(new Set(["GET /is_sleeping", "GET /health"]));
  const awake = await engine({ ...asleep, "/is_sleeping": [200, { is_sleeping: false }] });
  await expect(dialects.vllm.sleep!(awake.endpoint, 1, never)).rejects.toThrow("/is_sleeping says false");
  const dead = await engine({ ...asleep, "/health": [503] });
  await expect(dialects.vllm.sleep!(dead.endpoint, 1, never)).rejects.toThrow("/health answers 503");
});

test("vLLM wakes from either level once it reports that it is awake", async () => {
  const awake: Pages = { "/wake_up": [200], "/is_sleeping": [200, { is_sleeping: false }] };
  const light = await engine(awake);
  await dialects.vllm.wake!(light.endpoint, 1, never);
  expect(light.asked).toEqual(["POST /wake_up", "POST /reset_prefix_cache", "GET /is_sleeping"]);
  const broken = await engine({ ...awake, "/reset_prefix_cache": [500] });
  await expect(dialects.vllm.wake!(broken.endpoint, 1, never)).rejects.toThrow("/reset_prefix_cache answers 500");
  const deep = await engine({
    ...awake,
    ...{ "/wake_up?tags=weights": [200], "/collective_rpc": [200, { results: [null] }] },
    ...{ "/wake_up?tags=kv_cache": [200], "/reset_prefix_cache": [200] },
  });
  await dialects.vllm.wake!(deep.endpoint, 2, never);
  expect(deep.asked).toEqual([
    ...["POST /wake_up?tags=weights", "POST /collective_rpc", "POST /wake_up?tags=kv_cache"],
    ...["POST /reset_prefix_cache", "GET /is_sleeping"],
  ]);
  const asleep = await engine({ ...awake, "/is_sleeping": [200, { is_sleeping: true }] });
  await expect(dialects.vllm.wake!(asleep.endpoint, 1, never)).rejects.toThrow("/is_sleeping says true");
});

test("an engine without metrics has no values", async () => {
  const { endpoint } = await engine({ "/metrics": recorded("134-metrics-disabled") });
  await expect(dialects["llama-server"].metrics!(endpoint, never)).rejects.toThrow("/metrics answers 501");
});

test.each(["/health", "/v1/models", "/v1/completions"])(
  "at most a megabyte of an answer to %s is read",
  async (path) => {
    const { endpoint, asked } = await engine({ ...ready, [path]: "floods" });
    await expect(dialects.vllm.readiness(endpoint, model, never)).rejects.toThrow(
      `the answer to ${path} exceeds 1048576`,
    );
    await expect.poll(() => asked.at(-1)).toBe("given up");
  },
);

test("a vLLM whose cache fills counts as working, although its counters do not change until the prompt is read", async () => {
  const work = async (use: string) => {
    const page = `vllm:kv_cache_usage_perc{engine="0"} ${use}\nvllm:prompt_tokens_total{engine="0"} 100.0\n`;
    const { endpoint } = await engine({ "/metrics": [200, page] });
    return (await dialects.vllm.metrics!(endpoint, never)).work;
  };
  expect(await work("0.25")).toBe(100.25);
  expect(await work("0.5")).toBe(100.5);
});

test("at most four megabytes of metrics are read", async () => {
  const { endpoint, asked } = await engine({ "/metrics": "floods" });
  await expect(dialects.vllm.metrics!(endpoint, never)).rejects.toThrow("the answer to /metrics exceeds 4194304 bytes");
  await expect.poll(() => asked.at(-1)).toBe("given up");
});
