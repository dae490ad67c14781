import { expect, test } from "vitest";
import { readAnswer } from "./answer.ts";

const head = { "x-request-id": "r1" };
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const call = (more: object, args: string) => ({ index: 0, ...more, function: { ...more, arguments: args } });

function streamed(...events: (object | string)[]): Response {
  const lines = events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
  return new Response(lines.join(""), { headers: { ...head, "content-type": "text/event-stream; charset=utf-8" } });
}

const delta = (said: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: said, finish_reason }],
});

test("a stream and a body say the same", async () => {
  const pieces: number[] = [];
  const stream = streamed(
    ...[delta({ role: "assistant", content: "" }), delta({ reasoning_content: "hm" }), delta({ content: "Hel" })],
    ...[delta({ content: "lo" }), delta({}, "stop"), { choices: [], usage }, "[DONE]"],
  );
  const message = { role: "assistant", content: "Hello", reasoning_content: "hm" };
  const body = Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }], usage }, { headers: head });
  const [one, other] = [await readAnswer(stream, (count) => pieces.push(count)), await readAnswer(body)];
  expect(one).toMatchObject({ id: "r1", status: 200, ending: "whole", usage });
  expect(one.choices).toEqual(other.choices);
  expect(one.choices[0]).toMatchObject({ content: "Hello", reasoning: "hm", finish: "stop", isNull: false });
  expect(pieces).toEqual([1, 2, 3, 4, 5]);
});

test("a call is put together from its pieces, and no content is told apart from an empty one", async () => {
  const answer = await readAnswer(
    streamed(
      ...[delta({ role: "assistant", content: "" }), delta({ tool_calls: [call({ id: "c", name: "f" }, '{"a')] })],
      ...[delta({ tool_calls: [call({}, '":1}')] }), delta({}, "tool_calls"), "[DONE]"],
    ),
  );
  expect(answer.choices[0]).toMatchObject({ isNull: true, calls: [{ id: "c", name: "f", arguments: '{"a":1}' }] });
});

test("an error event, a refusal and a cut are told apart", async () => {
  const error = { message: "m", type: "t", param: null, code: "engine_died" };
  expect(await readAnswer(streamed(delta({ content: "a" }), { error }))).toMatchObject({ ending: "error", error });
  const refusal = Response.json({ error }, { status: 400 });
  expect(await readAnswer(refusal)).toMatchObject({ ending: "refused", status: 400, error });
  expect(await readAnswer(streamed(delta({ content: "a" })))).toMatchObject({ ending: "broken", pieces: 1 });
});
