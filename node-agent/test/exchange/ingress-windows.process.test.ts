/** How long a request may be: the smaller of the engine's window and the rules' window, reported with exact counts. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { expect, test } from "vitest";
import { chatRules, model, Rig } from "./ingress-rig.ts";
import {
  delta,
  done,
  event,
  respond,
  respondEvents,
  saying,
  usageEvent,
  usageOf,
  writeChunk,
} from "./scripted-engine.ts";
import type { EngineScript } from "./scripted-engine.ts";

const vllmRefusal = (window: number) => ({
  error: {
    message: `This model's maximum context length is ${window} tokens. However, you requested 0 output tokens and your prompt contains at least ${window + 1} input tokens`,
    ...{ type: "BadRequestError", param: "input_tokens", code: 400 },
  },
});
const embeddingRules: ModelRules = {
  ...chatRules,
  category: "embeddings",
  embeddings: { dimensions: { min: 2, max: 2, default: 2 }, inputTokens: 512 },
};

/** Refuses requests, and counts a token for each character. */
function counting(refuse: EngineScript): EngineScript {
  return (socket, request) => {
    if (request.path !== "/tokenize") return refuse(socket, request);
    const { prompt = "x".repeat(2_000) } = request.body as { prompt?: string };
    respond(socket, 200, JSON.stringify({ count: prompt.length }));
  };
}

function contextError(text: string): string {
  const { error } = JSON.parse(text) as { error: { type: string; message: string; param: string } };
  expect(error.param).toMatch(/^(messages|input(\[1\])?)$/);
  expect(error.type).toBe("ContextWindowExceededError");
  return error.message;
}

test("of several texts only the text that is too long is counted, in as few requests as necessary", async () => {
  const refuse = counting((socket) => respond(socket, 400, JSON.stringify(vllmRefusal(512))));
  await using rig = await Rig.open(refuse, { rules: embeddingRules, dialect: "vllm", windowTokens: 512 });
  const input = ["short", "x".repeat(700), "y".repeat(30)];
  const { status, text } = await rig.send(nodePaths.embeddings, { model, input }).answer;
  expect(status).toBe(400);
  expect(contextError(text)).toMatch(/512 tokens.*.700 in the input/);
  expect(rig.engine.saw.map(({ path }) => path)).toEqual(["/v1/embeddings", "/tokenize"]);
  expect(rig.engine.saw[1]!.body).toEqual({ model, prompt: input[1] });
});

test.each([
  ["of 2 MB", "x".repeat(2 << 20), 1],
  ["of 200 KB", "x".repeat(200_000), 2],
])("a refused prompt %s is counted only up to 1 MB", async (_name, content, calls) => {
  const refuse = counting((socket) => respond(socket, 400, JSON.stringify(vllmRefusal(1_024))));
  await using rig = await Rig.open(refuse, { dialect: "vllm" });
  const { text } = await rig.chat({ messages: [{ role: "user", content }] }).answer;
  expect(contextError(text)).toMatch(calls === 1 ? /at least 1025 in the messages/ : /2000 in the messages/);
  expect(rig.engine.saw).toHaveLength(calls);
});

test("a text of more than a megabyte is too long for any model, so it reaches no engine", async () => {
  await using rig = await Rig.open((socket) => respond(socket, 500, ""), { rules: embeddingRules });
  const { status, text } = await rig.send(nodePaths.embeddings, { model, input: ["a", "x".repeat((1 << 20) + 1)] })
    .answer;
  expect(status).toBe(400);
  expect(contextError(text)).toMatch(/512 tokens.*at least 513 in the input/);
  expect(rig.engine.saw).toEqual([]);
});

test.each([true, false])(
  "a refusal as the first event of a stream is counted too (stream: %s) [S18.4]",
  async (stream) => {
    const refuse = counting((socket) => respondEvents(socket, event(vllmRefusal(1_024)) + done));
    await using rig = await Rig.open(refuse, { dialect: "vllm" });
    const { status, text } = await rig.chat({ stream }).answer;
    expect(status).toBe(400);
    expect(contextError(text)).toMatch(/1024 tokens.*2000 in the messages/);
    await rig.quiet();
    expect(rig.bugs).toEqual([]);
  },
);

test("an engine that breaks while it counts has refused all the same", async () => {
  const refuse: EngineScript = (socket, { path }) =>
    path === "/tokenize" ? void socket.resetAndDestroy() : respond(socket, 400, JSON.stringify(vllmRefusal(1_024)));
  await using rig = await Rig.open(refuse, { dialect: "vllm" });
  const { status, text } = await rig.chat().answer;
  expect(status).toBe(400);
  expect(contextError(text)).toMatch(/at least 1025 in the messages/);
});

const good = delta({ content: "x" }, "stop", { usage: usageOf(200, 1) }) + usageEvent(200, 1) + done;

test("if an engine's window is smaller than the rules' window, clients see the engine's [S19.6]", async () => {
  await using rig = await Rig.open(good, { windowTokens: 256 });
  const { status, text } = await rig.chat({ max_tokens: 100 }).answer;
  expect(status).toBe(400);
  expect(contextError(text)).toMatch(/256 tokens.* 300 tokens .200 in the messages, 100 in the completion/);
  expect((await rig.chat({ max_tokens: 50 }).answer).status).toBe(200);
});

test("if an engine's window is larger, clients see the rules' window [S19.6]", async () => {
  await using rig = await Rig.open(good, { windowTokens: 100_000 });
  const { status, text } = await rig.chat({ max_tokens: 900 }).answer;
  expect(status).toBe(400);
  expect(contextError(text)).toMatch(/1024 tokens/);
});

const said = (content: string, prompt: number, completion: number) =>
  delta({ content }, null, { usage: usageOf(prompt, completion) });

test.each([true, false])(
  "a prompt that exceeds the rules is refused, even if its engine accepts it (stream: %s) [S18.4]",
  async (stream) => {
    await using rig = await Rig.open(said("x", 1_500, 1), { windowTokens: 100_000, dialect: "vllm" });
    for (const limit of [{}, { max_tokens: 10 }]) {
      const { status, text } = await rig.chat({ stream, ...limit }).answer;
      expect(status).toBe(400);
      expect(contextError(text)).toMatch(/1024 tokens.*1500 in the messages/);
    }
    expect(await rig.records()).toEqual([]);
  },
);

test("if an engine refuses only at the end, a body is still refused, and a stream ends with the error [A9]", async () => {
  const late = delta({ content: "x" }, "stop");
  const counted = usageEvent(1_500, 1);
  await using rig = await Rig.open(late + counted + done);
  const body = await rig.chat().answer;
  expect([body.status, contextError(body.text)]).toEqual([400, expect.stringContaining("1500 in the messages")]);
  const sent = rig.chat({ stream: true });
  rig.engine.script = (socket) => {
    saying(late)(socket);
    sent.stream.once("data", () => writeChunk(socket, counted));
  };
  const stream = await sent.answer;
  expect([stream.status, stream.ending]).toEqual([200, "error"]);
  expect(stream.text).toContain("ContextWindowExceededError");
  expect(await rig.records()).toMatchObject([{ outcome: "limit-ended", completionTokens: 1 }]);
});

test.each([true, false])(
  "an engine that reports a full window during an answer has ended it with length (stream: %s) [A9]",
  async (stream) => {
    const full = event({ error: { code: 400, type: "exceed_context_size_error", message: "x" } });
    await using rig = await Rig.open(said("x", 200, 1) + full + done);
    const { status, text, ending } = await rig.chat({ stream }).answer;
    expect({ status, ending }).toEqual({ status: 200, ending: "complete" });
    expect(text).toContain('"finish_reason":"length"');
    expect(await rig.records()).toMatchObject([{ outcome: "finished", promptTokens: 200, completionTokens: 1 }]);
  },
);

test("an answer ends with length at the rules' window, even if the engine would continue [S19.6]", async () => {
  const tokens = [1, 2, 3, 4, 5, 6].map((n) => said(`${n}`, 1_020, n)).join("");
  // It never ends by itself.
  await using rig = await Rig.open(tokens, { windowTokens: 100_000, dialect: "vllm" });
  const { status, text } = await rig.chat().answer;
  const { choices, usage: told } = JSON.parse(text) as { choices: unknown[]; usage: object };
  expect(status).toBe(200);
  expect(choices).toMatchObject([{ message: { content: "1234" }, finish_reason: "length" }]);
  expect(told).toMatchObject({ prompt_tokens: 1_020, completion_tokens: 4 });
  expect(await rig.records()).toMatchObject([{ outcome: "finished", promptTokens: 1_020, completionTokens: 4 }]);
});

test("the rules' window also limits a text to embed", async () => {
  const refuse = counting((socket) => respond(socket, 400, JSON.stringify(vllmRefusal(512))));
  await using rig = await Rig.open(refuse, { rules: embeddingRules, dialect: "vllm", windowTokens: 128 });
  const { text } = await rig.send(nodePaths.embeddings, { model, input: "x".repeat(600) }).answer;
  expect(contextError(text)).toMatch(/128 tokens.*600 in the input/);
});
