/**
 * Compares the simulated llama-server with recordings of version 0.5.0: the same words of refusals, the same shapes of
 * streams.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { readRecording } from "../../node-agent/test/exchange/recordings.ts";
import { ask } from "./sim-client.ts";
import { startSimEngine, type SimEngine } from "./sim-engine.ts";

let engine: SimEngine;

beforeAll(async () => {
  const options = { contextTokens: 1_024, maxRunning: 2, ttftMs: 1, itlMs: 1, tokens: 9 };
  engine = await startSimEngine({ ...options, model: "tiny", dialect: "llama-server" });
});
afterAll(() => engine[Symbol.asyncDispose]());

function answerTo(name: string) {
  const { path, request } = readRecording(name);
  return ask(engine.origin, path, request);
}

test.each(["16-chat-max-tokens-neg", "20-chat-n5-over-slots", "97-tool-logprobs-stream"])(
  "%s is refused with the recorded words",
  async (name) => {
    const { status, body } = readRecording(name);
    const heard = await answerTo(name);
    expect({ status: heard.status, body: JSON.parse(heard.text) as unknown }).toEqual({
      status,
      body: JSON.parse(body),
    });
  },
);

test.each(["11-chat-stream-usage", "12-chat-stream-nousage", "51-completions-stream", "91-tool-stream"])(
  "%s: the events of a stream have the recorded members in the recorded order",
  async (name) => {
    expect(eventShapes((await answerTo(name)).text)).toEqual(eventShapes(readRecording(name).body));
  },
);

test("21-chat-n2-stream: each of several answers has its own usage, with the recorded members", async () => {
  const shapes = (stream: string) => [...new Set(eventShapes(stream))].toSorted();
  const recorded = readRecording("21-chat-n2-stream").body;
  const heard = (await answerTo("21-chat-n2-stream")).text;
  expect(shapes(heard)).toEqual(shapes(recorded));
  const usages = (stream: string) => stream.match(/"usage":/g)?.length;
  expect([usages(heard), usages(recorded)]).toEqual([2, 2]);
});

/** Returns the shapes of the events of the first choice and of all choices together, without repetitions. */
function eventShapes(stream: string): string[] {
  const events = stream.split("\n\n").flatMap((event) => (event.startsWith("data: {") ? [event.slice(6)] : []));
  const shapes = events
    .map((data) => JSON.parse(data) as { choices: { index: number }[] })
    .filter(({ choices: [choice] }) => (choice?.index ?? 0) === 0)
    .map(shapeOf);
  return shapes.filter((shape, at) => shape !== shapes[at - 1]);
}

/** Returns the members by name, with the types of their values. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[${shapeOf(value[0])}]`;
  if (value === null || typeof value !== "object") return value === null ? "null" : typeof value;
  const members = Object.entries(value).map(([name, member]) => `${name}:${shapeOf(member)}`);
  return `{${members.toSorted().join(",")}}`;
}
