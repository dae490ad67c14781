import fc from "fast-check";
import { expect, test } from "vitest";
import type { AnswerSink } from "./canonical-stream.ts";
import { completionLogprobs, chatLogprobs } from "./logprobs.ts";
import { soundAnswer } from "./sound-answer.ts";

/** Stores the pieces of each part of an answer. */
class Parts implements AnswerSink {
  readonly pieces: Record<string, string[]> = {};
  readonly logprobs: object[] = [];

  role(): void {}

  reasoning(choice: number, text: string, logprobs?: object): void {
    this.#add(`${choice} reasoning`, text, logprobs);
  }

  content(choice: number, text: string, logprobs?: object): void {
    this.#add(`${choice} content`, text, logprobs);
  }

  toolCall(choice: number, { index, opening, arguments: json }: Parameters<AnswerSink["toolCall"]>[1], probs?: object) {
    this.#add(`${choice} call ${index}${opening ? ` ${opening.id} ${opening.name}` : ""}`, json, probs);
  }

  finish(choice: number): void {
    this.#add(`${choice} finish`, "", undefined);
  }

  #add(part: string, text: string, logprobs: object | undefined): void {
    (this.pieces[part] ??= []).push(text);
    if (logprobs) this.logprobs.push(logprobs);
  }
}

const give: Record<string, (sink: AnswerSink, text: string) => void> = {
  reasoning: (sink, text) => sink.reasoning(0, text, undefined),
  content: (sink, text) => sink.content(0, text, undefined),
  "call 0": (sink, text) => sink.toolCall(0, { index: 0, arguments: text }, undefined),
};
const sound = (text: string) => text.toWellFormed().replaceAll("\0", "\ufffd");

test.each(Object.keys(give))("%s of an engine is valid text for the client [D6]", (part) => {
  const run = (...texts: string[]) => {
    const parts = new Parts();
    const sink = soundAnswer(parts, 1);
    for (const text of texts) give[part]!(sink, text);
    sink.finish(0, "stop");
    return parts.pieces[`0 ${part}`];
  };
  expect(run("a\0b", "\0")).toEqual(["a\ufffdb", "\ufffd"]);
  expect(run("a\ud83d", "\ude00b")).toEqual(["a", "\ud83d\ude00b"]);
  expect(run("\ud83d", "\ude00")).toEqual(["\ud83d\ude00"]);
  expect(run("\ud83d", "b")).toEqual(["\ufffdb"]);
  expect(run("\ude00", "a\ud83d")).toEqual(["\ufffd", "a", "\ufffd"]);
});

test("a text comes out unchanged in any pieces, with U+FFFD in place of NUL and of unpaired surrogates [D6 S18.10]", () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom("a", "\0", "\ud83d", "\ude00"), maxLength: 3 }));
  fc.assert(
    fc.property(texts, (pieces) => {
      const parts = new Parts();
      const sink = soundAnswer(parts, 1);
      for (const piece of pieces) sink.content(0, piece, undefined);
      sink.finish(0, "stop");
      const given = parts.pieces["0 content"] ?? [];
      expect(given.join("")).toBe(sound(pieces.join("")));
      for (const piece of given) expect(piece).toBe(sound(piece));
    }),
    { numRuns: 300 },
  );
});

test("a half that waits belongs to its own part and choice, and log probabilities do not wait for it", () => {
  const parts = new Parts();
  const sink = soundAnswer(parts, 2);
  sink.content(1, "\ud83d", undefined);
  sink.reasoning(0, "\ud83d", { of: "half" });
  sink.content(0, "\ude00", undefined);
  sink.content(1, "\ude00", undefined);
  sink.toolCall(0, { index: 0, opening: { id: "i\0", name: "f\ud83d" }, arguments: "\ud83d" }, undefined);
  sink.toolCall(0, { index: 1, arguments: "\ude00" }, undefined);
  expect(parts.pieces).toEqual({
    "0 reasoning": ["", "\ufffd"],
    "0 content": ["\ufffd"],
    "1 content": ["\ud83d\ude00"],
    "0 call 0 i\ufffd f\ufffd": [""],
    "0 call 0": ["\ufffd"],
    "0 call 1": ["\ufffd"],
  });
  expect(parts.logprobs).toEqual([{ of: "half" }]);
});

test("the tokens of log probabilities are valid text", () => {
  const [token, told] = ["a\0\ud83d", "a\ufffd\ufffd"];
  const chat = { content: [{ token, logprob: -1, top_logprobs: [{ token, logprob: -1 }] }] };
  expect(chatLogprobs(chat, 1)).toMatchObject([{ token: told, top_logprobs: [{ token: told }] }]);
  expect(completionLogprobs(chat, 1, 0)).toMatchObject({ tokens: [told], top_logprobs: [{ [told]: -1 }] });
  const old = { tokens: [token], top_logprobs: [{ [token]: -1 }, null] };
  expect(completionLogprobs(old, 1, 0)).toMatchObject({ tokens: [told], top_logprobs: [{ [told]: -1 }, null] });
});
