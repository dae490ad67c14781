/**
 * Compares the simulated vLLM with recordings of vLLM 0.32.0: the same words of refusals, the same shapes of answers.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { readRecording, recordingText } from "../../node-agent/test/exchange/recordings.ts";
import { ask } from "./sim-client.ts";
import { startSimEngine, type SimEngine } from "./sim-engine.ts";

let chat: SimEngine;
let embed: SimEngine;

beforeAll(async () => {
  const shared = { dialect: "vllm", ttftMs: 1, itlMs: 1, tokens: 9 } as const;
  chat = await startSimEngine({ ...shared, model: "vllm-chat", contextTokens: 4_096 });
  embed = await startSimEngine({ ...shared, model: "vllm-embed", contextTokens: 2_048 });
});
afterAll(() => Promise.all([chat, embed].map((engine) => engine[Symbol.asyncDispose]())));

/** Recorded texts above some length are cut in the middle. This many characters replace the missing part. */
const longText = "the cat ".repeat(10_000);

function answerTo(name: string, more: object = {}, engine = chat) {
  const { path, request } = readRecording(name);
  return ask(engine.origin, path, { ...request, ...more });
}

test.each<[name: string, more?: object]>([
  ["20-chat-max-tokens-0"],
  ["22-chat-max-tokens-huge"],
  ["23-chat-too-long", { messages: [{ role: "user", content: longText }] }],
  ["24-chat-too-long-stream", { messages: [{ role: "user", content: longText }] }],
  ["28-chat-unknown-model"],
  ["29-chat-no-messages"],
  ["32-chat-temp-negative"],
  ["34-chat-bad-schema"],
  ["43-chat-top-logprobs-only"],
  ["47-chat-n2-greedy"],
  ["51-chat-stop-empty"],
  ["52-chat-stream-options-no-stream"],
  ["67-tool-empty"],
])("v%s is refused with the recorded words", async (name, more = {}) => {
  const { status, body } = readRecording(`v${name}`);
  const heard = await answerTo(`v${name}`, more);
  expect({ status: heard.status, body: heard.text }).toEqual({ status, body });
});

test.each<[name: string, more?: object]>([
  ["145-embed-too-long", { input: [longText] }],
  ["146-embed-dimensions"],
  ["147-embed-empty"],
  ["148-embed-empty-list"],
])("v%s is refused with the recorded words", async (name, more = {}) => {
  const { status, body } = readRecording(`v${name}`);
  const heard = await answerTo(`v${name}`, more, embed);
  expect({ status: heard.status, body: heard.text }).toEqual({ status, body });
});

test("v27: truncated JSON is refused with the recorded words", async () => {
  const [, body] = /\n\n(?:.*\n)+\n([^]*)$/.exec(recordingText("v27-chat-bad-json"))!;
  const response = await fetch(`${chat.origin}/v1/chat/completions`, { method: "POST", body: '{"messages":[' });
  expect({ status: response.status, body: await response.text() }).toEqual({ status: 400, body: body!.trim() });
});

test("v35: a bad schema is refused with the first event of a stream, with spaces that bodies do not have", async () => {
  const { body } = readRecording("v35-chat-bad-schema-stream");
  expect((await answerTo("v35-chat-bad-schema-stream")).text).toBe(body);
});

test.each([
  ["11-chat-thinking-off"],
  ["45-chat-n2"],
  ["60-tool"],
  ["62-tool-required"],
  ["64-tool-named"],
  ["80-completion"],
  ["85-completion-batch"],
  ["90-tokenize-prompt"],
])("v%s: a body has the recorded members in the recorded order, with the recorded null values", async (name) => {
  const recorded = JSON.parse(readRecording(`v${name}`).body) as unknown;
  const heard = JSON.parse((await answerTo(`v${name}`)).text) as unknown;
  expect(shapeOf(heard)).toBe(shapeOf(recorded));
});

test.each([
  ["12-chat-stream-usage"],
  ["13-chat-stream-continuous"],
  ["16-chat-thinking-on-stream"],
  ["18-chat-thinking-cut-stream"],
  ["46-chat-n2-stream"],
  ["61-tool-stream"],
  ["65-tool-named-stream"],
  ["72-tool-required-thinking-stream"],
  ["73-tool-named-thinking-stream"],
  ["81-completion-stream"],
])("v%s: a stream has events of the recorded shapes in the recorded order", async (name) => {
  const heard = (await answerTo(`v${name}`)).text;
  expect(eventShapes(heard)).toEqual(eventShapes(readRecording(`v${name}`).body));
});

test("each of several answers counts its own tokens while it runs, and the final usage counts all", async () => {
  const counts = (body: string) =>
    dataOf(body).map((data) => {
      const { choices, usage } = JSON.parse(data) as {
        choices: { index: number }[];
        usage: { completion_tokens: number };
      };
      return [choices[0]?.index ?? "all", usage.completion_tokens] as const;
    });
  const recorded = counts(readRecording("v46-chat-n2-stream").body);
  const heard = counts((await answerTo("v46-chat-n2-stream")).text);
  expect(heard.at(-1)).toEqual(recorded.at(-1));
  for (const choice of [0, 1]) {
    const of = (all: typeof heard) => all.filter(([index]) => index === choice);
    expect(of(heard)).toEqual(of(recorded));
  }
});

test.each([
  ["161-dev-sleep-1-wait"],
  ["167-dev-sleep-again"],
  ["168-dev-wake-1"],
  ["161-dev-sleep-1-wait"],
  ["173-dev-wake-weights"],
  ["176-dev-wake-kv"],
  ["171-dev-reset-prefix"],
])("v%s: the calls for sleep and wake give the recorded answers", async (name) => {
  const { path, status, body } = readRecording(`v${name}`);
  const response = await fetch(chat.origin + path, { method: "POST" });
  expect({ status: response.status, body: await response.text() }).toEqual({ status, body });
});

test("v04: every series has the name and labels of a recorded series", async () => {
  const series = (text: string) =>
    [...text.matchAll(/^(vllm:\w+)\{(.*)\} /gm)].map(
      ([, name, labels]) => `${name} ${labels!.replaceAll(/"[^"]*"/g, "")}`,
    );
  const recorded = new Set(series(recordingText("v04-metrics-idle")));
  await answerTo("v12-chat-stream-usage");
  const heard = series((await ask(chat.origin, "/metrics")).text);
  expect(heard.filter((each) => !recorded.has(each))).toEqual([]);
});

function dataOf(stream: string): string[] {
  return stream
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => event.slice("data: ".length));
}

/** Returns the shapes of all events, ordered by choice, without repetitions. */
function eventShapes(stream: string): string[] {
  const events = dataOf(stream).map((data) => JSON.parse(data) as { choices: { index: number }[] });
  const indexOf = ({ choices }: (typeof events)[number]) => choices[0]?.index ?? Infinity;
  const shapes = events
    .toSorted((a, b) => (indexOf(a) < indexOf(b) ? -1 : Number(indexOf(a) > indexOf(b))))
    .map(shapeOf);
  const ended = stream.endsWith("data: [DONE]\n\n") ? ["[DONE]"] : [];
  return [...shapes.filter((shape, at) => shape !== shapes[at - 1]), ...ended];
}

/** Returns the members in their order, with the types of their values. The first item represents a list. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[${shapeOf(value[0])}]`;
  if (value === null || typeof value !== "object") return value === null ? "null" : typeof value;
  const members = Object.entries(value).map(([name, member]) => `${name}:${shapeOf(member)}`);
  return `{${members.join(",")}}`;
}
