import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { engine, start, until, usage } from "./engine-per-test.ts";
import { ask, chat, said } from "./sim-client.ts";

describe("a stream of vLLM", () => {
  it("has role, deltas, the finish reason alone after an end token, usage and the terminator", async () => {
    const heard = await chat(await start(), "sim:tokens=3 hi", { ...usage, model: "m" });
    const choices = heard.events.map((event) => (event["choices"] as Record<string, unknown>[])[0]);
    expect(choices.map((choice) => choice?.["delta"])).toEqual([
      { role: "assistant", content: "" },
      { content: "t0 " },
      { content: "t1 " },
      { content: "t2 " },
      {},
      undefined,
    ]);
    expect(choices.map((choice) => choice?.["finish_reason"])).toEqual([null, null, null, null, "stop", undefined]);
    expect(heard.events.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
    expect(heard.events.slice(0, -1).some((event) => "usage" in event)).toBe(false);
    expect(heard.terminated).toBe(true);
  });

  it("has the usage so far in every chunk if requested", async () => {
    const options = { stream_options: { include_usage: true, continuous_usage_stats: true } };
    const heard = await chat(await start(), "sim:tokens=3 hi", options);
    const counts = heard.events.map((event) => (event["usage"] as Record<string, number>)["completion_tokens"]);
    expect(counts).toEqual([0, 1, 2, 3, 3, 3]);
  });

  it("has the finish reason beside the last text if a limit ends the answer", async () => {
    const heard = await chat(await start(), "sim:tokens=3 hi", { max_tokens: 2 });
    expect(heard.events.at(-1)).toMatchObject({ choices: [{ delta: { content: "t1 " }, finish_reason: "length" }] });
  });

  it("has reasoning in `reasoning` and counts it in its usage", async () => {
    const thinking = { chat_template_kwargs: { enable_thinking: true }, ...usage };
    const heard = await chat(await start(), "sim:tokens=2,reasoning=3 hi", thinking);
    expect([said(heard, "reasoning"), said(heard, "content")]).toEqual(["r0 r1 r2 ", "t0 t1 "]);
    expect(heard.events.at(-1)).toMatchObject({
      usage: { completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 3 } },
    });
  });

  it("calls the first tool with arguments that fit its schema", async () => {
    const tools = [
      {
        type: "function",
        function: { name: "f", parameters: { type: "object", properties: { city: { type: "string" } } } },
      },
    ];
    const heard = await ask(await start(), "/v1/chat/completions", {
      messages: [{ role: "user", content: "x" }],
      tools,
    });
    expect(JSON.parse(heard.text)).toMatchObject({
      choices: [
        {
          finish_reason: "tool_calls",
          message: { content: null, tool_calls: [{ function: { name: "f", arguments: '{"city":"xxxx"}' } }] },
        },
      ],
    });
  });

  it.each(["vllm", "llama-server", "openai"] as const)("calls several functions at once, as %s", async (dialect) => {
    const tool = (name: string) => ({
      type: "function",
      function: { name, parameters: { type: "object", properties: { at: { const: name } } } },
    });
    const heard = await chat(await start({ dialect }), "sim:calls=2 hi", { tools: [tool("f"), tool("g")] });
    const calls: { name?: string; arguments: string }[] = [];
    for (const { choices } of heard.events as { choices: { delta: { tool_calls?: any[] } }[] }[])
      for (const { index, function: said } of choices[0]?.delta.tool_calls ?? []) {
        calls[index] ??= { name: said.name, arguments: "" };
        calls[index].arguments += said.arguments ?? "";
      }
    expect(calls).toEqual([
      { name: "f", arguments: '{"at":"f"}' },
      { name: "g", arguments: '{"at":"g"}' },
    ]);
  });

  it("answers with an instance of the requested schema", async () => {
    const schema = {
      type: "object",
      properties: { n: { type: "integer" }, tags: { type: "array", items: { enum: ["a"] } } },
    };
    const heard = await chat(await start(), "x", { response_format: { type: "json_schema", json_schema: { schema } } });
    expect(JSON.parse(said(heard, "content"))).toEqual({ n: 1, tags: ["a"] });
  });

  it("contains several simultaneous answers and counts all of them", async () => {
    const heard = await chat(await start(), "sim:tokens=4 hi", { n: 3, ...usage });
    expect([0, 1, 2].map((choice) => said(heard, "content", choice))).toEqual(Array(3).fill("t0 t1 t2 t3 "));
    expect(heard.events.at(-1)).toMatchObject({ usage: { completion_tokens: 12 } });
  });

  it("ends with `length` at the limit", async () => {
    const heard = await chat(await start(), "sim:tokens=50 hi", { max_tokens: 5, ...usage });
    expect(heard.text).toContain('"finish_reason":"length"');
    expect(heard.events.at(-1)).toMatchObject({ usage: { completion_tokens: 5 } });
  });
});

describe("vLLM", () => {
  const cases: [string, Record<string, unknown>, number, RegExp][] = [
    [
      "a prompt over the context",
      { max_tokens: 60, messages: [{ role: "user", content: "x".repeat(200) }] },
      400,
      /maximum context length is 100 tokens\. However, you requested 60 output tokens/,
    ],
    ["a limit over the context", { max_tokens: 101 }, 400, /max_tokens=101 cannot be greater than max_model_len/],
    ["no tokens at all", { max_tokens: 0 }, 400, /max_tokens must be at least 1, got 0/],
    ["another model", { model: "x" }, 404, /NotFoundError/],
    ["stream options without a stream", { stream_options: {} }, 400, /Stream options can only be defined/],
    ["an empty stop string", { stop: [""] }, 400, /stop cannot contain/],
    ["no messages", { messages: undefined }, 400, /body\.messages/],
  ];
  it.each(cases)("refuses %s", async (_name, body, status, text) => {
    const origin = await start({ contextTokens: 100 });
    const heard = await ask(origin, "/v1/chat/completions", { messages: [{ role: "user", content: "x" }], ...body });
    expect(heard.status).toBe(status);
    expect(heard.text).toMatch(text);
  });
});

describe("llama-server", () => {
  it("sends the role with null content, ends in a separate chunk, and closes the announced keep-alive connection", async () => {
    const heard = await chat(await start({ dialect: "llama-server" }), "sim:tokens=2 hi", usage);
    const choices = heard.events.map((event) => (event["choices"] as Record<string, unknown>[])[0]);
    expect(choices.map((choice) => choice?.["delta"])).toEqual([
      { role: "assistant", content: null },
      { content: "t0 " },
      { content: "t1 " },
      {},
      undefined,
    ]);
    const socket = connect(engine.port, "127.0.0.1");
    const body = JSON.stringify({ messages: [{ role: "user", content: "hi" }], stream: true });
    let answer = "";
    socket.on("data", (data) => (answer += data.toString()));
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await once(socket, "close", { signal: AbortSignal.timeout(2_000) });
    expect(answer.toLowerCase()).toContain("connection: keep-alive");
  });

  it("answers Loading model until it has loaded, and returns the counts of an overflow as fields", async () => {
    const origin = await start({ dialect: "llama-server", startMs: 1_000, contextTokens: 50 });
    expect(await ask(origin, "/health")).toMatchObject({ status: 503, text: expect.stringContaining("Loading model") });
    await engine.ready;
    expect((await ask(origin, "/health")).text).toBe('{"status":"ok"}');
    const heard = await chat(origin, "x".repeat(400));
    expect(JSON.parse(heard.text)).toMatchObject({
      error: { type: "exceed_context_size_error", n_prompt_tokens: 107, n_ctx: 50 },
    });
  });

  it("gives each of several answers its own usage", async () => {
    const heard = await chat(await start({ dialect: "llama-server" }), "sim:tokens=3 hi", { n: 2, ...usage });
    const counts = heard.events.filter((event) => "usage" in event).map((event) => event["usage"]);
    expect(counts).toMatchObject([{ completion_tokens: 3 }, { completion_tokens: 3 }]);
  });

  it("notices a client that leaves before its first token only after a second without results", async () => {
    const origin = await start({ dialect: "llama-server", ttftMs: 60_000 });
    const leaving = new AbortController();
    const asked = chat(origin, "hi", {}, { signal: leaving.signal });
    await until(() => engine.state().running === 1);
    const leftMs = performance.now();
    leaving.abort();
    await expect(asked).rejects.toThrow("aborted");
    await until(() => engine.state().running === 0);
    expect(performance.now() - leftMs).toBeGreaterThan(990);
  });
});

it("an OpenAI-style engine sends errors without a wrapper and deltas with a null reasoning", async () => {
  const origin = await start({ dialect: "openai", contextTokens: 50 });
  expect(JSON.parse((await chat(origin, "x".repeat(400))).text)).toMatchObject({ object: "error", code: 400 });
  const heard = await chat(origin, "sim:tokens=1 hi");
  expect(heard.text).toContain('"delta":{"reasoning_content":null,"content":"t0 "}');
});

it("gives the same text the same vector of length 1", async () => {
  const origin = await start({ embeddingDimensions: 64 });
  const vectors = async (more = {}) => {
    const heard = await ask(origin, "/v1/embeddings", { input: ["a", "b", "a"], ...more });
    return (JSON.parse(heard.text) as { data: { embedding: number[] }[] }).data.map(({ embedding }) => embedding);
  };
  const [a, b, again] = await vectors();
  expect(again).toEqual(a);
  expect(b).not.toEqual(a);
  expect(a).toHaveLength(64);
  expect(Math.hypot(...a!)).toBeCloseTo(1, 5);
  const [packed] = (await vectors({ encoding_format: "base64" })) as unknown as string[];
  expect(new Float32Array(new Uint8Array(Buffer.from(packed!, "base64")).buffer)).toEqual(new Float32Array(a!));
});
