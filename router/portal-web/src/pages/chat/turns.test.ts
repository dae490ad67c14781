import { expect, test } from "vitest";
import { noSettings, readSettings } from "./chat-settings.ts";
import { bodyOf, isCalling, newAnswer, withPieces, type AnswerTurn, type Turn } from "./turns.ts";

const question = (text: string): Turn => ({ kind: "question", id: 1, text, pictures: [] });
const answer = (more: Partial<AnswerTurn>): AnswerTurn => ({ ...newAnswer(2, "m"), state: "done", ...more });
const messagesOf = (turns: readonly Turn[]) => bodyOf({ model: "m", turns }, readSettings(noSettings)).messages;
const call = { id: "c1", name: "f", arguments: "{}" };

test("an answer that never began, and calls without a sent result, do not belong to the conversation", () => {
  const turns = [question("a"), answer({ state: "failed" }), question("b"), answer({ calls: [call], results: ["x"] })];
  expect(messagesOf(turns)).toEqual(["a", "b"].map((content) => ({ role: "user", content })));
  expect(isCalling(turns[3])).toBe(true);
  expect(isCalling(answer({ calls: [call], state: "writing" }))).toBe(false);
});

test("sent results follow their calls, also an empty one", () => {
  const calls = [call, { ...call, id: "c2" }];
  expect(messagesOf([question("a"), answer({ content: "hm", calls, results: ["x"], isResumed: true })])).toEqual([
    { role: "user", content: "a" },
    {
      ...{ role: "assistant", content: "hm" },
      tool_calls: ["c1", "c2"].map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })),
    },
    { role: "tool", tool_call_id: "c1", content: "x" },
    { role: "tool", tool_call_id: "c2", content: "" },
  ]);
});

test("a message of images alone has no text", () => {
  const url = "data:image/png;base64,AA==";
  const turn: Turn = { kind: "question", id: 1, text: " ", pictures: [{ name: "x.png", url }] };
  expect(messagesOf([turn])).toEqual([{ role: "user", content: [{ type: "image_url", image_url: { url } }] }]);
});

test("the pieces of several calls are put together", () => {
  const first = withPieces([], [{ index: 0, id: "c1", name: "f", arguments: "" }]);
  const second = withPieces(first, [
    { index: 0, arguments: '{"a":' },
    { index: 1, id: "c2", name: "g", arguments: "{}" },
  ]);
  expect(withPieces(second, [{ index: 0, arguments: "1}" }])).toEqual([
    { id: "c1", name: "f", arguments: '{"a":1}' },
    { id: "c2", name: "g", arguments: "{}" },
  ]);
});
