/** Compares pages, counts, embeddings and refusals of the dialects with recordings, where there are any. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { engine, start as startEngine } from "./engine-per-test.ts";
import { ask, chat, said } from "./sim-client.ts";
import type { SimDialectName } from "./sim-engine.ts";

const start = (dialect: SimDialectName) => startEngine({ dialect, contextTokens: 512, maxRunning: 2 });

/** The last line of a recorded exchange: the body as it was received. */
function recordedError(name: string): unknown {
  const file = join(import.meta.dirname, "../../node-agent/test/recordings", `${name}.txt`);
  return JSON.parse(readFileSync(file, "utf8").trim().split("\n").at(-1)!);
}

async function json(path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }> {
  const { status, text } = await ask(engine.origin, path, body);
  return { status, body: JSON.parse(text) as Record<string, unknown> };
}

describe("llama-server", () => {
  it("refuses a text too long to embed and more answers than slots, with the recorded words", async () => {
    await start("llama-server");
    const input = "x".repeat(902 * 4);
    expect(await json("/v1/embeddings", { input })).toEqual({ status: 500, body: recordedError("126-embed-too-long") });
    const many = await json("/v1/chat/completions", { messages: [{ role: "user", content: "hi" }], n: 5 });
    expect(many).toEqual({ status: 400, body: recordedError("20-chat-n5-over-slots") });
  });

  it("returns whole embeddings whatever the request demands, under the requested model name", async () => {
    await start("llama-server");
    const { status, body } = await json("/v1/embeddings", { model: "x", input: ["a"], dimensions: 16 });
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(["model", "object", "usage", "data"]);
    expect(body).toMatchObject({ model: "x", usage: { prompt_tokens: 1, total_tokens: 1 } });
    expect((body["data"] as { embedding: number[] }[])[0]!.embedding).toHaveLength(2_048);
    expect((await json("/v1/embeddings", { input: [] })).status).toBe(500);
    expect((await json("/v1/embeddings", { input: "a", encoding_format: "int8" })).status).toBe(400);
  });

  it("returns the context of a slot on a separate page, not in its list of models", async () => {
    await start("llama-server");
    expect((await json("/props")).body).toMatchObject({ default_generation_settings: { n_ctx: 512 }, total_slots: 2 });
    expect(JSON.stringify((await json("/v1/models")).body)).not.toContain("max_model_len");
  });

  it("counts tokens of texts, and of whole chats on a separate path", async () => {
    await start("llama-server");
    expect((await json("/tokenize", { content: "12345678" })).body).toEqual({ tokens: [0, 1] });
    const messages = [{ role: "user", content: "12345678" }];
    const { body } = await json("/v1/chat/completions/input_tokens", { messages });
    expect(body).toEqual({ input_tokens: 9, object: "response.input_tokens" });
  });

  it("reports its reading progress on request, with a role chunk each time, before the first token", async () => {
    const heard = await chat(await start("llama-server"), "sim:tokens=1 hi", { return_progress: true });
    const progress = heard.events.map((event) => event["prompt_progress"]);
    expect(progress.slice(0, 2)).toMatchObject([{ processed: 0 }, { processed: 11, total: 11 }]);
    expect(progress.slice(2).filter(Boolean)).toEqual([]);
    const roles = heard.text.match(/"role":"assistant"/g);
    expect(roles).toHaveLength(3);
  });

  it("treats a named tool like any tool", async () => {
    const tools = ["f", "g"].map((name) => ({ type: "function", function: { name } }));
    const named = { tools, tool_choice: { type: "function", function: { name: "g" } } };
    expect((await chat(await start("llama-server"), "hi", named)).text).toContain('"name":"f"');
  });

  it("refuses probabilities of calls in a stream, and generates the calls that a schema lists", async () => {
    const origin = await start("llama-server");
    const tools = [{ type: "function", function: { name: "f" } }];
    const refused = { messages: [{ role: "user", content: "hi" }], tools, stream: true, logprobs: true };
    expect(await json("/v1/chat/completions", refused)).toEqual({
      ...{ status: 400, body: recordedError("97-tool-logprobs-stream") },
    });
    const items = { type: "object", properties: { name: { const: "f" }, arguments: { $ref: "#/$defs/0" } } };
    const schema = { type: "array", items, minItems: 1, $defs: { 0: { type: "object", properties: { a: {} } } } };
    const response_format = { type: "json_schema", json_schema: { name: "s", schema } };
    const heard = await chat(origin, "sim:text hi", { tools, tool_choice: "none", response_format });
    expect(said(heard, "content")).toBe('[{"name":"f","arguments":{"a":null}}]');
  });
});

describe("vllm", () => {
  it("accepts four stop strings and refuses more with the recorded words, or accepts a configured number", async () => {
    await start("vllm");
    const stopped = (stop: string[]) =>
      json("/v1/chat/completions", { messages: [{ role: "user", content: "sim:tokens=1" }], stop });
    expect(await stopped(["15", "16", "17", "18", "19"])).toEqual({
      ...{ status: 400, body: recordedError("v50-chat-stop-5-strings") },
    });
    expect((await stopped(["15", "16", "17", "18"])).status).toBe(200);
    await engine[Symbol.asyncDispose]();
    await startEngine({ dialect: "vllm", stopStringsMax: 5 });
    expect((await stopped(["15", "16", "17", "18", "19"])).status).toBe(200);
  });
});

describe.each(["vllm", "openai"] as const)("%s", (dialect) => {
  it("refuses `dimensions`, lists its context length with its models, and counts tokens", async () => {
    await start(dialect);
    expect((await json("/v1/embeddings", { input: "a", dimensions: 16 })).status).toBe(400);
    expect((await json("/v1/models")).body).toMatchObject({ data: [{ id: "m", max_model_len: 512 }] });
    expect((await json("/tokenize", { prompt: "12345678" })).body).toMatchObject({ count: 2, max_model_len: 512 });
    expect((await json("/props")).status).toBe(404);
  });

  it("can refuse with the first event of a stream", async () => {
    const origin = await start(dialect);
    engine.setFaults(["late-refusal"]);
    const heard = await chat(origin, "x".repeat(4_000));
    expect(heard.status).toBe(200);
    expect(heard.events).toMatchObject([{ error: { code: 400 } }]);
    expect(heard.terminated).toBe(true);
  });

  it("has a front end whose counters change with each scrape", async () => {
    const origin = await start(dialect);
    const served = async () => Number(/http_requests_total\{.*\} (\d+)/.exec((await ask(origin, "/metrics")).text)![1]);
    const before = await served();
    expect(await served()).toBe(before + 1);
  });
});

it("disconnects in the middle of a chunk", async () => {
  const heard = await chat(await start("vllm"), "sim:tokens=5,fault=cut-chunk:2 hi");
  expect(heard.broken).toBe(true);
  expect(heard.text).toContain('"content":"t1 "');
});
