/** Embeddings: the agent makes batches, lengths and formats, whatever the engine supports. */
import { ends } from "@weiche/shared/frames/frame.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { expect, test } from "vitest";
import { chatRules, model, Rig } from "./ingress-rig.ts";
import { httpHead, respond, type EngineSaw, type EngineScript } from "./scripted-engine.ts";
import { readRecording, recordingText } from "./recordings.ts";
import type { Socket } from "node:net";

const rules: ModelRules = {
  ...chatRules,
  category: "embeddings",
  embeddings: {
    dimensions: { min: 2, max: 64, default: 64 },
    inputTokens: 512,
    instruction: { default: "Represent the user's input.", template: "Instruct: {instruction}\nQuery: {input}" },
  },
};
const recorded = readRecording("120-embed");
const vectors = (JSON.parse(recorded.body) as { data: { embedding: number[] }[] }).data.map((item) => item.embedding);

interface Embeddings {
  readonly data: { readonly index: number; readonly embedding: number[] | string }[];
  readonly usage: object;
}

/**
 * Gives each text a vector with its number, and counts one token per text. The order is reversed, so that the agent
 * must sort.
 */
function numbered(socket: Socket, { body }: EngineSaw): void {
  const texts = body["input"] as string[];
  const data = texts.map((text, index) => ({
    ...{ object: "embedding", index },
    embedding: Array.from({ length: 64 }, (_, at) => (at === 0 ? Number(/\d+$/.exec(text)![0]) : 1)),
  }));
  const usage = { prompt_tokens: texts.length, total_tokens: texts.length };
  respond(socket, 200, JSON.stringify({ object: "list", data: data.toReversed(), usage }));
}

async function ask(rig: Rig, body: object) {
  const { answer } = rig.send(nodePaths.embeddings, { model, ...body });
  const { status, text, ending, code } = await answer;
  return { status, ending, code, text, body: JSON.parse(text) as Embeddings };
}

const norm = (vector: readonly number[]) => Math.hypot(...vector);

test("the vectors of an engine are passed on unchanged [S11.6 S11.8 S20.3]", async () => {
  await using rig = await Rig.open((socket) => respond(socket, 200, recorded.body), { rules });
  const { status, ending, body } = await ask(rig, { input: ["hello world", "cat"] });
  expect({ status, ending }).toEqual({ status: 200, ending: "complete" });
  expect(body).toEqual({
    object: "list",
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
    model,
    usage: { prompt_tokens: 7, total_tokens: 7 },
  });
  expect(await rig.records()).toMatchObject([
    { outcome: "finished", source: "engine", promptTokens: 7, completionTokens: 0 },
  ]);
});

test("base64 equals the bytes that the engine itself would have sent [S11.4]", async () => {
  await using rig = await Rig.open(
    (socket) => respond(socket, 200, JSON.stringify({ data: [{ index: 0, embedding: vectors[0] }] })),
    { rules },
  );
  const { body } = await ask(rig, { input: "hello world", encoding_format: "base64" });
  const own = JSON.parse(readRecording("121-embed-base64").body) as Embeddings;
  expect(body.data[0]!.embedding).toBe(own.data[0]!.embedding);
  expect(rig.engine.saw[0]!.body).toMatchObject({ encoding_format: "float" });
});

test("fewer dimensions are the beginning of the vector at length 1, and the engine is not asked for them [S11.3]", async () => {
  await using rig = await Rig.open((socket) => respond(socket, 200, recorded.body), { rules });
  const { body } = await ask(rig, { input: ["hello world", "cat"], dimensions: 16 });
  for (const [index, { embedding }] of body.data.entries()) {
    const cut = vectors[index]!.slice(0, 16);
    expect(embedding).toHaveLength(16);
    expect(norm(embedding as number[])).toBeCloseTo(1, 5);
    for (const [at, value] of (embedding as number[]).entries()) expect(value).toBeCloseTo(cut[at]! / norm(cut), 5);
  }
  expect(rig.engine.saw[0]!.body).toEqual({ model, input: expect.any(Array) as unknown, encoding_format: "float" });
});

test("the instruction goes into the text by the model's template, with a default [S11.5]", async () => {
  await using rig = await Rig.open((socket) => respond(socket, 200, recorded.body), { rules });
  await ask(rig, { input: ["{instruction} $& one", "two"], instruction: "Find {input}." });
  await ask(rig, { input: ["one", "two"] });
  expect(rig.engine.saw.map((request) => request.body["input"])).toEqual([
    ["Instruct: Find {input}.\nQuery: {instruction} $& one", "Instruct: Find {input}.\nQuery: two"],
    ["Instruct: Represent the user's input.\nQuery: one", "Instruct: Represent the user's input.\nQuery: two"],
  ]);
});

test("a long list is split for the engine and merged in order [S11.7]", async () => {
  await using rig = await Rig.open(numbered, { rules });
  const input = Array.from({ length: 2_048 }, (_, index) => `text ${index}`);
  const { body } = await ask(rig, { input });
  expect(body.data.map(({ index, embedding }) => [index, embedding[0]])).toEqual(
    input.map((_, index) => [index, index]),
  );
  expect(body.usage).toEqual({ prompt_tokens: 2_048, total_tokens: 2_048 });
  expect(Math.max(...rig.engine.saw.map((request) => (request.body["input"] as string[]).length))).toBe(32);
  expect(rig.engine.connections).toBe(1);
});

test("long texts make smaller batches", async () => {
  await using rig = await Rig.open(numbered, { rules, cutsTexts: false });
  const input = Array.from({ length: 5 }, (_, index) => `${"x".repeat(300_000)} ${index}`);
  expect((await ask(rig, { input })).status).toBe(200);
  expect(rig.engine.saw).toHaveLength(5);
});

test.each([
  ["no text", { input: [] }],
  ["too many texts", { input: Array.from({ length: 2_049 }, () => "x") }],
  ["tokens", { input: [1, 2] }],
  ["too many dimensions", { input: "x", dimensions: 65 }],
  ["too few dimensions", { input: "x", dimensions: 1 }],
  ["another format", { input: "x", encoding_format: "hex" }],
])("%s: 400, and the engine is not asked", async (_name, body) => {
  await using rig = await Rig.open(numbered, { rules });
  expect((await ask(rig, body)).status).toBe(400);
  expect(rig.engine.saw).toEqual([]);
});

const recordedError = recordingText("126-embed-too-long").split("\n\n")[2]!;

test.each([
  ["llama-server", 500, recordedError, /512 tokens.*902 in the input/],
  [
    "TEI",
    422,
    '{"message":"`inputs` must have less than 512 tokens. Given: 600","code":422,"type":"Validation"}',
    /512 tokens.*600 in the input/,
  ],
  [
    "vLLM",
    400,
    '{"error":{"message":"This model\'s maximum context length is 512 tokens. However, you requested 0 output tokens and your prompt contains at least 513 input tokens","type":"BadRequestError","param":"input_tokens","code":400}}',
    /512 tokens.*at least 513 in the input/,
  ],
])("a text that is too long for %s is a 400 with both counts [S11.2]", async (_name, status, body, message) => {
  await using rig = await Rig.open((socket) => respond(socket, status, body), { rules });
  const answer = await ask(rig, { input: "x" });
  expect(answer.status).toBe(400);
  expect((answer.body as unknown as { error: object }).error).toMatchObject({
    type: "ContextWindowExceededError",
    message: expect.stringMatching(message) as string,
  });
});

/** Accepts any text, and counts a token for each character. */
function counting(socket: Socket, { body }: EngineSaw): void {
  const texts = body["input"] as string[];
  const tokens = texts.reduce((sum, text) => sum + text.length, 0);
  const data = texts.map((_, index) => ({ index, embedding: vectors[0] }));
  respond(socket, 200, JSON.stringify({ data, usage: { prompt_tokens: tokens } }));
}

const plain: ModelRules = { ...rules, embeddings: { ...rules.embeddings!, instruction: undefined } };

test.each([
  ["one text", "x".repeat(513), "input"],
  ["the second of three", ["x", "x".repeat(513), "x"], "input[1]"],
  ["a text after a full batch", [...Array<string>(32).fill("x"), "x".repeat(513)], "input[32]"],
])(
  "%s exceeds the rules although its engine accepts it: a 400 names it, with both numbers [A9 S11.2]",
  async (_n, input, param) => {
    for (const windowTokens of [undefined, 32_768]) {
      await using rig = await Rig.open(counting, { rules: plain, windowTokens });
      const { status, text } = await ask(rig, { input });
      expect(status).toBe(400);
      expect(JSON.parse(text)).toMatchObject({
        error: { type: "ContextWindowExceededError", param, message: expect.stringMatching(/512\D.*513\D/) as string },
      });
      expect(await rig.records()).toEqual([]);
    }
  },
);

test("a text of as many tokens as the rules allow is embedded, and billed by the engine's count", async () => {
  await using rig = await Rig.open(counting, { rules: plain, windowTokens: 32_768 });
  expect((await ask(rig, { input: ["x".repeat(512), "x"] })).status).toBe(200);
  expect(await rig.records()).toMatchObject([{ source: "engine", promptTokens: 513 }]);
});

test.each([
  ["vLLM", { dialect: "vllm" }],
  ["TEI that refuses", { cutsTexts: false }],
] as const)(
  "%s refuses long texts itself: it gets the usual batches, and its refusal names the text",
  async (_n, engine) => {
    const refuse: EngineScript = (socket) =>
      respond(socket, 422, '{"message":"`inputs` must have less than 512 tokens. Given: 600","code":422}');
    await using rig = await Rig.open(refuse, { rules: plain, windowTokens: 512, ...engine });
    const { status, text } = await ask(rig, { input: ["x", "x".repeat(600)] });
    expect([status, JSON.parse(text).error.param]).toEqual([400, "input[1]"]);
    expect(rig.engine.saw).toHaveLength(1);
  },
);

/** Cuts each text at this many tokens, and counts a token for each character that is left. */
function cutting(atTokens: number): EngineScript {
  return (socket, { body }) => {
    const texts = body["input"] as string[];
    const tokens = texts.reduce((sum, text) => sum + Math.min(text.length, atTokens), 0);
    const data = texts.map((_, index) => ({ index, embedding: vectors[0] }));
    respond(socket, 200, JSON.stringify({ data, usage: { prompt_tokens: tokens } }));
  };
}

const long = "x".repeat(600);
test.each([
  ["at the catalogue's limit", 512, undefined, long, "input"],
  ["at the catalogue's limit", 512, undefined, ["x", long, "x"], "input[1]"],
  ["at the catalogue's limit, which it reports", 512, 512, ["x", long, "x"], "input[1]"],
  ["below the catalogue's limit, which it reports", 384, 384, ["x", "x".repeat(500)], "input[1]"],
  ["far below the catalogue's limit", 100, undefined, ["x", long], "input[1]"],
])(
  "an engine cuts long texts %s (%i): a 400 names the text, and nothing is billed [A9 S11.2]",
  async (_n, atTokens, windowTokens, input, param) => {
    await using rig = await Rig.open(cutting(atTokens), { rules: plain, windowTokens });
    for (let round = 0; round < 2; round++) {
      const { status, text } = await ask(rig, { input });
      expect(status).toBe(400);
      const message = expect.stringContaining(`maximum context length is ${atTokens} tokens`) as string;
      expect(JSON.parse(text)).toMatchObject({ error: { type: "ContextWindowExceededError", param, message } });
    }
    expect(await rig.records()).toEqual([]);
    const promises = `the engine cuts texts at ${atTokens} tokens, the catalogue promises 512`;
    expect(rig.shortfalls).toEqual(atTokens < 512 ? [promises] : []);
  },
);

test("once an engine has cut a text, each text that may be longer is asked for alone", async () => {
  await using rig = await Rig.open(cutting(100), { rules: plain });
  expect((await ask(rig, { input: long })).status).toBe(400);
  expect((await ask(rig, { input: ["x", "x".repeat(200)] })).body).toMatchObject({ error: { param: "input[1]" } });
});

test("an engine that cuts texts is asked again only for a count that no whole text has reached, and texts are billed once", async () => {
  // Four bytes are a token.
  const script: EngineScript = (socket, saw) =>
    cutting(512)(socket, {
      ...saw,
      body: { input: (saw.body["input"] as string[]).map((each) => each.slice(0, each.length / 4)) },
    });
  await using rig = await Rig.open(script, { rules: plain });
  for (const bytes of [1_600, 800, 1_200, 1_604])
    expect((await ask(rig, { input: "x".repeat(bytes) })).status).toBe(200);
  expect(rig.engine.saw).toHaveLength(4 + 2);
  expect((await rig.records()).map(({ promptTokens, source }) => [promptTokens, source])).toEqual(
    [400, 200, 300, 401].map((tokens) => [tokens, "engine"]),
  );
});

test("an engine that counts nothing may have cut a text: it is served and estimated, never 0 [A9]", async () => {
  await using rig = await Rig.open((socket) => respond(socket, 200, JSON.stringify({ data: [item] })), {
    rules: plain,
  });
  expect((await ask(rig, { input: "x".repeat(1_000) })).status).toBe(200);
  expect(await rig.records()).toMatchObject([{ promptTokens: 200, estimatedTokens: 200 }]);
});

test("a text is never halved within a character", async () => {
  await using rig = await Rig.open(cutting(512), { rules: plain });
  for (const input of [`x${"😀".repeat(300)}`, "😀".repeat(301)]) await ask(rig, { input });
  const halves = rig.engine.saw.flatMap(({ body }) => body["input"] as string[]);
  expect(halves.every((text) => text.isWellFormed())).toBe(true);
  expect(halves.length).toBeGreaterThan(2);
});

const item = { index: 0, embedding: vectors[0] };
test.each([
  ["too few vectors", { data: [] }],
  ["a vector twice", { data: [item, item] }],
  ["a value that is not a number", { data: [{ index: 0, embedding: [...vectors[0]!.slice(1), null] }] }],
  ["a number that exceeds 32 bits", { data: [{ index: 0, embedding: [...vectors[0]!.slice(1), 1e39] }] }],
  ["a vector that is shorter than promised", { data: [{ index: 0, embedding: [1, 0] }] }],
  ["text", { data: [{ index: 0, embedding: "AAAA" }] }],
  ["no object", []],
])("%s: 500, no record", async (_name, body) => {
  await using rig = await Rig.open((socket) => respond(socket, 200, JSON.stringify(body)), { rules });
  expect(await ask(rig, { input: "x" })).toMatchObject({ status: 500, code: ends.nodeFailed });
  expect(await rig.records()).toEqual([]);
});

test.each(["-5", "0", "1e400", "9007199254740993", '"12"', "null", "513"])(
  "a usage of %s is ignored, the vectors are kept, and the text is estimated [A2 A9]",
  async (tokens) => {
    const body = `{"data":[${JSON.stringify(item)}],"usage":{"prompt_tokens":${tokens}}}`;
    await using rig = await Rig.open((socket) => respond(socket, 200, body), { rules });
    expect((await ask(rig, { input: "x" })).body.usage).toEqual({ prompt_tokens: 9, total_tokens: 9 });
    const records = rig.outbox.records;
    expect(records).toMatchObject([{ source: "counted", promptTokens: 9, estimatedTokens: 9 }]);
  },
);

test.each([
  ["as many tokens as all texts may have", 3 * 512, {}, "engine"],
  ["more than all texts may have", 3 * 512 + 1, {}, "counted"],
  ["more than the router allows", 101, { tokensMax: 100 }, "counted"],
])("%s, for a list of texts: %i [A2]", async (_name, tokens, headers, source) => {
  const data = [0, 1, 2].map((index) => ({ ...item, index }));
  const body = JSON.stringify({ data, usage: { prompt_tokens: tokens } });
  await using rig = await Rig.open((socket) => respond(socket, 200, body), { rules });
  const { answer } = rig.send(nodePaths.embeddings, { model, input: ["x", "y", "z"] }, headers);
  expect((await answer).status).toBe(200);
  const estimated = { promptTokens: 27, estimatedTokens: 27 };
  expect(rig.outbox.records).toMatchObject([
    { source, ...(source === "engine" ? { promptTokens: tokens } : estimated) },
  ]);
});

test("a client that leaves between batches pays for the finished batches", async () => {
  let batches = 0;
  await using rig = await Rig.open(
    (socket, request) => {
      if (++batches < 3) numbered(socket, request);
      else socket.write(httpHead(200, { "content-length": 10 }));
    },
    { rules },
  );
  const input = Array.from({ length: 100 }, (_, index) => `text ${index}`);
  const { stream } = rig.send(nodePaths.embeddings, { input });
  while (batches < 3) await new Promise((resolve) => setImmediate(resolve));
  stream.cancel();
  expect(await rig.records()).toMatchObject([{ outcome: "client-ended", source: "counted", promptTokens: 64 }]);
});
