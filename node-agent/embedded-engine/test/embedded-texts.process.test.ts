/** Continuations and embeddings of plain texts, from the real process of the embedded engine. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventsOf, post, startEngine, type EngineProcess } from "./embedded-process.ts";

let chat: EngineProcess;
let embedder: EngineProcess;

beforeAll(async () => {
  [chat, embedder] = await Promise.all([startEngine(), startEngine(["--embeddings", "--context", "512"])]);
});
afterAll(async () => {
  await chat[Symbol.asyncDispose]();
  await embedder[Symbol.asyncDispose]();
});

interface Completion {
  choices: { index: number; text: string; finish_reason: string | null; logprobs: Record<string, unknown[]> | null }[];
  usage: { prompt_tokens: number; completion_tokens: number };
}

interface Embeddings {
  data: { index: number; embedding: number[] }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

async function complete(body: object): Promise<Completion> {
  const answer = await post(chat.url, "/v1/completions", { temperature: 0, ...body });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Completion;
}

async function embed(body: object): Promise<Embeddings> {
  const answer = await post(embedder.url, "/v1/embeddings", { model: "tiny", ...body });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Embeddings;
}

async function refusal(engine: EngineProcess, path: string, body: object): Promise<{ type: string; param: string }> {
  const answer = await post(engine.url, path, body);
  expect(answer.status).toBe(400);
  return ((await answer.json()) as { error: { type: string; param: string } }).error;
}

describe("a text completion", () => {
  test("continues the text unchanged, with 16 tokens by default", async () => {
    const answer = await complete({ prompt: "Count from 1 to 100: 1, 2, 3," });
    expect(answer).toMatchObject({ object: "text_completion", usage: { completion_tokens: 16 } });
    expect(answer.choices).toMatchObject([{ index: 0, finish_reason: "length", logprobs: null }]);
    expect(answer.choices[0]!.text).not.toBe("");
  });

  test("answers several prompts and choices in their order, and counts each prompt once", async () => {
    const [one, two] = await Promise.all(
      ["The capital of", "1, 2, 3,"].map((prompt) => complete({ prompt, max_tokens: 4 })),
    );
    const both = await complete({ prompt: ["The capital of", "1, 2, 3,"], n: 2, max_tokens: 4 });
    const texts = [one, one, two, two].map((answer) => answer!.choices[0]!.text);
    expect(both.choices.map(({ text }) => text)).toEqual(texts);
    expect(both.choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    expect(both.usage).toMatchObject({
      prompt_tokens: one!.usage.prompt_tokens + two!.usage.prompt_tokens,
      completion_tokens: 16,
    });
  });

  test("streams the same text, with log probabilities in the older shape", async () => {
    const wish = { prompt: "The capital of", max_tokens: 6, logprobs: 2 };
    const whole = await complete(wish);
    const options = { temperature: 0, stream: true, stream_options: { include_usage: true } };
    const events = await eventsOf(await post(chat.url, "/v1/completions", { ...wish, ...options }));
    expect(events.pop()).toBe("[DONE]");
    expect(events.pop()).toMatchObject({ choices: [], usage: { completion_tokens: 6 } });
    const choices = (events as Completion[]).map((event) => event.choices[0]!);
    expect(choices.map(({ text }) => text).join("")).toBe(whole.choices[0]!.text);
    expect(choices.at(-1)!.finish_reason).toBe("length");
    for (const field of ["tokens", "token_logprobs", "top_logprobs", "text_offset"])
      expect(choices.flatMap(({ logprobs }) => logprobs![field])).toEqual(whole.choices[0]!.logprobs![field]);
  });

  test("goes on to its limit if the end of the text is ignored", async () => {
    const of = async (more: object) => (await complete({ prompt: "The end.", max_tokens: 8, ...more })).usage;
    expect([await of({}), await of({ ignore_eos: true })]).toMatchObject([
      { completion_tokens: 1 },
      { completion_tokens: 8 },
    ]);
  });

  test("accepts token ids, and refuses unsupported parameters", async () => {
    expect((await complete({ prompt: [10, 11, 12], max_tokens: 1 })).usage.prompt_tokens).toBe(3);
    const refused = (body: object) => refusal(chat, "/v1/completions", body);
    expect(await refused({ prompt: [99_999] })).toMatchObject({ param: "prompt" });
    expect(await refused({ prompt: "" })).toMatchObject({ param: "prompt" });
    expect(await refused({})).toMatchObject({ param: "prompt" });
    expect(await refused({ prompt: "x", suffix: "y" })).toMatchObject({ param: "suffix" });
    expect(await refused({ prompt: "x", echo: true })).toMatchObject({ param: "echo" });
  });
});

describe("embeddings", () => {
  const texts = ["The dog runs across the meadow.", "A dog is running over the grass.", "The invoice is too high."];
  const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, at) => sum + value * b[at]!, 0);

  test("are in the order of the input, of length 1, and similar for similar texts [S11.7 S11.9]", async () => {
    const { data, usage } = await embed({ input: texts });
    expect(data.map(({ index }) => index)).toEqual([0, 1, 2]);
    const [dog, grass, invoice] = data.map(({ embedding }) => embedding);
    for (const vector of [dog!, grass!, invoice!]) expect(dot(vector, vector)).toBeCloseTo(1, 6);
    expect(dog).toHaveLength(192);
    expect(dot(dog!, grass!)).toBeGreaterThan(dot(dog!, invoice!));
    const each = await Promise.all(texts.map((input) => embed({ input })));
    expect(each.map((one) => one.data[0]!.embedding)).toEqual([dog, grass, invoice]);
    expect(usage.total_tokens).toBe(each.reduce((sum, one) => sum + one.usage.prompt_tokens, 0));
  });

  test("of fewer dimensions are the first ones, normalised to length 1 [S11.9]", async () => {
    const [whole, cut] = await Promise.all([embed({ input: texts[0] }), embed({ input: texts[0], dimensions: 16 })]);
    const first = whole.data[0]!.embedding.slice(0, 16);
    const short = cut.data[0]!.embedding;
    expect(short).toHaveLength(16);
    expect(dot(short, short)).toBeCloseTo(1, 6);
    expect(dot(first, short) / Math.hypot(...first)).toBeCloseTo(1, 6);
  });

  test("in base64 equal little-endian floats of 32 bits", async () => {
    const [floats, base64] = await Promise.all(
      ["float", "base64"].map((encoding_format) => embed({ input: texts[0], encoding_format })),
    );
    const bytes = Buffer.from(base64!.data[0]!.embedding as unknown as string, "base64");
    const values = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
    expect(values).toEqual(floats!.data[0]!.embedding.map(Math.fround));
  });

  test("accept a text that fills the context, and refuse one more token with both counts [S11.2]", async () => {
    const full = Array.from({ length: 512 }, () => 65);
    expect((await embed({ input: [full] })).usage.prompt_tokens).toBe(512);
    const error = await refusal(embedder, "/v1/embeddings", { input: [full, [...full, 65]] });
    expect(error).toMatchObject({ type: "exceed_context_size_error", n_prompt_tokens: 513, n_ctx: 512 });
    expect(error).toMatchObject({ message: expect.stringMatching(/^input 1 has 513 tokens.* 512 tokens$/) });
  });

  test("with wrong parameters are refused", async () => {
    const refused = (body: object) => refusal(embedder, "/v1/embeddings", body);
    for (const input of ["", [], [""], {}, [1.5], undefined])
      expect(await refused({ input })).toMatchObject({ param: "input" });
    expect(await refused({ input: "x", dimensions: 193 })).toMatchObject({ param: "dimensions" });
    expect(await refused({ input: "x", encoding_format: "hex" })).toMatchObject({ param: "encoding_format" });
  });

  test("are the only output of an engine that was started for them", async () => {
    const messages = [{ role: "user", content: "Hi" }];
    expect(await refusal(embedder, "/v1/chat/completions", { messages })).toMatchObject({
      type: "not_supported_error",
    });
    expect(await refusal(embedder, "/v1/completions", { prompt: "Hi" })).toMatchObject({ type: "not_supported_error" });
  });
});
