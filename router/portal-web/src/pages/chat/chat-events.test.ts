import { expect, test } from "vitest";
import { ChatEventReader } from "./chat-events.ts";

const stream = `event: state
data: {"state":"activating","usualMs":7000}

event: state
data: {"state":"waiting","position":2,"estimateMs":14000}

data: {"choices":[{"delta":{"role":"assistant"}}]}

data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}

data: {"choices":[{"delta":{"content":"Grüße"}}]}

data: {"choices":[],"usage":{"prompt_tokens":3}}

data: [DONE]

event: done
data: {"credits":"61.000"}

`;

test("events do not depend on the pieces in which the text arrives", () => {
  const whole = new ChatEventReader().read(stream);
  expect(whole).toEqual([
    { kind: "state", state: "activating", usualMs: 7000 },
    { kind: "state", state: "waiting", position: 2, estimateMs: 14000 },
    { kind: "piece", content: "", reasoning: "hm" },
    { kind: "piece", content: "Grüße", reasoning: "" },
    { kind: "done", summary: { credits: "61.000" } },
  ]);
  for (const size of [1, 2, 7, 50]) {
    const reader = new ChatEventReader();
    const pieces = stream.match(new RegExp(`[^]{1,${size}}`, "g"))!;
    expect(pieces.flatMap((piece) => reader.read(piece))).toEqual(whole);
  }
});

test("an error in the middle of an answer is an event", () => {
  const [event] = new ChatEventReader().read(`event: error\ndata: {"status":503,"error":{"code":"overloaded"}}\n\n`);
  expect(event).toEqual({ kind: "error", status: 503, error: { code: "overloaded" } });
});

test("tool calls and the reason of the end are read", () => {
  const chunk = (choice: object) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
  const call = { index: 0, id: "c1", type: "function", function: { name: "f", arguments: "" } };
  const events = new ChatEventReader().read(
    chunk({ delta: { tool_calls: [call] } }) +
      chunk({ delta: { tool_calls: [{ index: 0, function: { arguments: "{}" } }] } }) +
      chunk({ delta: {}, finish_reason: "tool_calls" }),
  );
  const empty = { kind: "piece", content: "", reasoning: "" };
  expect(events).toEqual([
    { ...empty, calls: [{ index: 0, id: "c1", name: "f", arguments: "" }] },
    { ...empty, calls: [{ index: 0, id: undefined, arguments: "{}" }] },
    { ...empty, finish: "tool_calls" },
  ]);
});
