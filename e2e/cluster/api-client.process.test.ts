import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, type Reading } from "./api-client.ts";

const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const error = { message: "m", type: "t", param: null, code: "engine_died" };
const call = (more: object, args: string) => ({ index: 0, ...more, function: { ...more, arguments: args } });

interface Given {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text: string;
  /** Whether the connection stays open after the text. */
  readonly isOpen?: boolean;
}
let given: Given;
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(given.status ?? 200, { "x-request-id": "r1", ...given.headers }).write(given.text);
  if (!given.isOpen) response.end();
});
let baseUrl: string;
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.closeAllConnections());

function answerTo(answer: Given, reading?: Reading) {
  given = answer;
  return ask({ baseUrl, apiKey: "k" }, "/", {}, reading);
}

function streamed(...events: (object | string)[]): Given {
  const lines = events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
  return { text: lines.join(""), headers: { "content-type": "text/event-stream; charset=utf-8" } };
}

const delta = (said: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: said, finish_reason }],
});

test("a stream and a body yield the same answer", async () => {
  const pieces: number[] = [];
  const stream = streamed(
    ...[delta({ role: "assistant", content: "" }), delta({ reasoning_content: "hm" }), delta({ content: "Hel" })],
    ...[delta({ content: "lo" }), delta({}, "stop"), { choices: [], usage }, "[DONE]"],
  );
  const message = { role: "assistant", content: "Hello", reasoning_content: "hm" };
  const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }], usage });
  const one = await answerTo(stream, { onPiece: (count) => pieces.push(count) });
  const other = await answerTo({ text: body });
  expect(one).toMatchObject({ id: "r1", status: 200, ending: "whole", usage, pieces: 3 });
  expect(one.firstByteMs).toBeGreaterThan(0);
  expect(one.choices).toEqual(other.choices);
  expect(one.choices[0]).toMatchObject({ content: "Hello", reasoning: "hm", finish: "stop", isNull: false });
  expect(pieces).toEqual([1, 2, 3]);
});

test("a call is joined from its pieces, and missing content differs from empty content", async () => {
  const answer = await answerTo(
    streamed(
      ...[delta({ role: "assistant", content: "" }), delta({ tool_calls: [call({ id: "c", name: "f" }, '{"a')] })],
      ...[delta({ tool_calls: [call({}, '":1}')] }), delta({}, "tool_calls"), "[DONE]"],
    ),
  );
  expect(answer.choices[0]).toMatchObject({ isNull: true, calls: [{ id: "c", name: "f", arguments: '{"a":1}' }] });
});

test("an error event, a refusal, a cut and a client that leaves have different endings", async () => {
  expect(await answerTo(streamed(delta({ content: "a" }), { error }))).toMatchObject({ ending: "error", error });
  const refusal = { status: 429, headers: { "retry-after": "7" }, text: JSON.stringify({ error }) };
  expect(await answerTo(refusal)).toMatchObject({ ending: "refused", status: 429, error, retryAfterSeconds: 7 });
  expect(await answerTo(streamed(delta({ content: "a" })))).toMatchObject({ ending: "broken", pieces: 1 });
  const leaving = new AbortController();
  const open = { ...streamed(delta({ content: "a" })), isOpen: true };
  const left = await answerTo(open, { signal: leaving.signal, onPiece: () => setImmediate(() => leaving.abort()) });
  expect(left).toMatchObject({ ending: "left", pieces: 1 });
  server.close();
  expect(await answerTo(open)).toMatchObject({ ending: "broken", status: 0, id: undefined });
});
