/** The memory of a collected answer is limited. */
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { expect, test } from "vitest";
import type { AnswerWriter } from "./answer-writer.ts";
import { AnswerFull } from "./collected.ts";
import { chatBody } from "./chat-body.ts";
import { completionBody } from "./completion-body.ts";

const envelope = { id: "a", created: 0, model: asId<ModelId>("m") };
const options = { choices: 1, logprobs: 20, includeUsage: false };
const chat = () => chatBody(envelope, options);
const completion = () => completionBody(envelope, options);

const long = "x".repeat(1 << 20);
const probability = (token: string) => ({ token, logprob: -1, bytes: null, top_logprobs: [] });
const chatShape = (tokens: readonly string[]) => ({ content: tokens.map(probability) });
const oldShape = (tokens: readonly string[]) => ({ tokens, token_logprobs: tokens.map(() => -1) });

const endless: [name: string, writer: AnswerWriter, more: (writer: AnswerWriter, count: number) => void][] = [
  ["thoughts", chat(), (writer) => writer.reasoning(0, long, undefined)],
  ["text", chat(), (writer) => writer.content(0, long, undefined)],
  ["probabilities without text", chat(), (writer) => writer.content(0, "", chatShape([long]))],
  ["names of calls", chat(), (w, index) => w.toolCall(0, call(index, { id: "i", name: long }), undefined)],
  ["ids of calls", chat(), (w, index) => w.toolCall(0, call(index, { id: long, name: "f" }), undefined)],
  ["text of a completion", completion(), (writer) => writer.content(0, long, undefined)],
  ["probabilities of a completion", completion(), (writer) => writer.content(0, "", chatShape([long]))],
  ["probabilities of the older shape", completion(), (writer) => writer.content(0, "", oldShape([long]))],
];

function call(index: number, opening: { readonly id: string; readonly name: string }) {
  return { index, opening, arguments: "" };
}

test.each(endless)("128 MiB of %s fill an answer", (_name, writer, more) => {
  const all = () => {
    for (let count = 0; count < 128; count++) more(writer, count);
  };
  expect(all).toThrow(AnswerFull);
});

const tokens = Array<string>(200_000).fill("x");
const many: [name: string, writer: AnswerWriter, logprobs: object][] = [
  ["a chat", chat(), chatShape(tokens)],
  ["a completion", completion(), chatShape(tokens)],
  ["a completion in the older shape", completion(), oldShape(tokens)],
];
test.each(many)("two hundred thousand tokens of %s may come in one event", (_name, writer, logprobs) => {
  writer.content(0, "x", logprobs);
  const body = writer.closing({ promptTokens: 1, completionTokens: 1, source: "engine" });
  const { choices } = JSON.parse(body) as { choices: { logprobs: { content?: unknown[]; tokens?: unknown[] } }[] };
  expect(choices[0]!.logprobs.content ?? choices[0]!.logprobs.tokens).toHaveLength(200_000);
});

test("a window of 32,768 tokens, each with twenty alternatives, does not fill an answer", () => {
  const one = { token: " word", logprob: -12.345_678_901_234_567, bytes: [32, 119, 111, 114, 100] };
  const piece = { content: Array.from({ length: 1_024 }, () => ({ ...one, top_logprobs: Array(20).fill(one) })) };
  const writer = chat();
  const all = () => {
    for (let pieces = 0; pieces < 32; pieces++) writer.content(0, " word".repeat(1_024), piece);
  };
  expect(all).not.toThrow();
});
