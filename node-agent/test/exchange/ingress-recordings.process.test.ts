/** Clients get canonical answers from recorded answers of real engines. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import { choicesOf, eventsOf, model, Rig, type Answer } from "./ingress-rig.ts";
import { endEvents, respond, respondEvents, saying, usageOf, writeChunk } from "./scripted-engine.ts";
import { readRecording, recordingText } from "./recordings.ts";
import { replay } from "./replay.ts";

const text = (content: string, index = 0) => ({ index, delta: { content }, finish_reason: null });
const thought = (reasoning_content: string) => ({ index: 0, delta: { reasoning_content }, finish_reason: null });
const role = (index = 0) => ({ index, delta: { role: "assistant", content: "" }, finish_reason: null });
const finish = (finish_reason: string, index = 0) => ({ index, delta: {}, finish_reason });
const callPiece = (call: object) => ({ index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason: null });
const callStart = (id: string, args: string) =>
  callPiece({ id, type: "function", function: { name: "get_weather", arguments: args } });
const callMore = (args: string) => callPiece({ function: { arguments: args } });
const usage = (prompt: number, completion: number, more: object = {}) => ({ ...usageOf(prompt, completion), ...more });
const cached = (cached_tokens: number) => ({ prompt_tokens_details: { cached_tokens } });

const streams: [name: string, choices: unknown[]][] = [
  [
    "11-chat-stream-usage",
    [
      role(),
      ...["Hello", ",", " I", " am", " a", " tiny", " scripted", " model", "."].map((word) => text(word)),
      ...[finish("stop"), usage(22, 10, cached(21))],
    ],
  ],
  [
    "12-chat-stream-nousage",
    [
      role(),
      ...["Hello", ",", " I", " am", " a", " tiny", " scripted", " model", "."].map((word) => text(word)),
      finish("stop"),
    ],
  ],
  [
    "21-chat-n2-stream",
    [
      ...[role(1), text("Hello", 1), role(0), text("Hello"), text(",", 1), text(",")],
      ...[finish("length"), finish("length", 1), usage(22, 4, cached(21))],
    ],
  ],
  ["68-return-progress", [role(), text("Hello"), text(","), finish("length")]],
  [
    "81-think-stream",
    [
      role(),
      ...["First", " I", " plan", ".", "\n"].map(thought),
      ...["The", " answer", " is", " 42", "!"].map((word) => text(word)),
      ...[finish("stop"), usage(22, 12, { ...cached(21), completion_tokens_details: { reasoning_tokens: 5 } })],
    ],
  ],
  [
    "91-tool-stream",
    [
      ...[role(), callStart("yrGvRobQqt8ayTLBuqewHfUSHoD1J3od", '{"'), callMore("city"), callMore('": "')],
      ...[callMore("Par"), callMore("is"), callMore('"}'), finish("tool_calls"), usage(475, 11, cached(474))],
    ],
  ],
  [
    "94-tool-cut-stream",
    [
      ...[role(), callStart("XM1wpsn8aR1wjxAL9IyNciRboQlldFYW", '{"'), callMore("city"), callMore('": "')],
      finish("length"),
    ],
  ],
];

test.each(streams)("%s becomes a canonical stream [S4.15 S5.7 S5.8 S6.1 S6.2 S6.4 S7.5]", async (name, choices) => {
  const answer = await replay(name);
  expect(choicesOf(answer.text)).toEqual(choices);
  expectWholeStream(answer);
  const { requestId } = answer;
  for (const chunk of eventsOf(answer.text)
    .slice(0, -1)
    .map((data) => JSON.parse(data) as object)) {
    const keys = "usage" in chunk ? ["usage"] : [];
    expect(Object.keys(chunk)).toEqual(["id", "object", "created", "model", "choices", ...keys]);
    expect(chunk).toMatchObject({ id: `chatcmpl-${requestId}`, object: "chat.completion.chunk", model });
  }
});

function expectWholeStream(answer: Answer): void {
  expect(answer).toMatchObject({ status: 200, kind: "events", ending: "complete" });
  expect(eventsOf(answer.text).at(-1)).toBe("[DONE]");
}

test.each([
  ["usage", "11-chat-stream-usage"],
  ["timings", "12-chat-stream-nousage"],
])("a stream without requested usage is still counted by the engine's %s [S6.4]", async (_, name) => {
  const { text: got, record } = await replay(name, { stream_options: null });
  expect(got).not.toContain("usage");
  expect(record).toMatchObject({ promptTokens: 22, completionTokens: 10, cachedTokens: 21, source: "engine" });
  expect(record).toMatchObject({ outcome: "finished", accountId: "account-1", factor: 1_500n, attempt: 1 });
});

test("two answers are billed as two, with their prompt once [S4.10]", async () => {
  const { record } = await replay("21-chat-n2-stream");
  expect(record).toMatchObject({ promptTokens: 22, completionTokens: 4, source: "engine" });
});

test.each([
  ["11-chat-stream-usage", "10-chat"],
  ["81-think-stream", "80-think"],
  ["91-tool-stream", "90-tool"],
  ["94-tool-cut-stream", "93-tool-cut"],
  ["23-chat-logprobs-stream", "22-chat-logprobs"],
])("%s collected equals the engine's own body of %s [S4.13 S5.1 S5.3]", async (streamed, whole) => {
  const { status, kind, ending, text: got, requestId } = await replay(streamed, { stream: false });
  expect({ status, kind, ending }).toEqual({ status: 200, kind: "json", ending: "complete" });
  const body = JSON.parse(got) as { choices: { message: Record<string, unknown> }[] };
  expect(body).toMatchObject({ id: `chatcmpl-${requestId}`, object: "chat.completion", model });
  const expected = JSON.parse(readRecording(whole).body) as typeof body & { choices: { logprobs?: unknown }[] };
  for (const choice of expected.choices) {
    const calls = choice.message["tool_calls"] as { id: string }[] | undefined;
    const own = body.choices[0]!.message["tool_calls"] as typeof calls;
    calls?.forEach((call, index) => (call.id = own![index]!.id));
    if (calls) choice.message["content"] = null;
    choice.logprobs = choice.logprobs
      ? JSON.parse(JSON.stringify(choice.logprobs, (key, value: unknown) => (key === "id" ? undefined : value)))
      : null;
  }
  expect(body.choices).toEqual(expected.choices);
});

test("an answer whose tokens were used up by reasoning has no content [S5.4 S7.6 S18.9]", async () => {
  const { body } = readRecording("81-think-stream");
  const cut = body.slice(0, body.indexOf('{"choices":[{"finish_reason":null,"index":0,"delta":{"content"'));
  const rest = body.slice(body.indexOf('data: {"choices":[{"finish_reason":"stop"')).replace('"stop"', '"length"');
  await using rig = await Rig.open(cut.slice(0, -6) + rest);
  const { text: got } = await rig.chat().answer;
  expect(JSON.parse(got)).toMatchObject({
    choices: [{ finish_reason: "length", message: { content: null, reasoning_content: "First I plan.\n" } }],
  });
});

test("a completion keeps its own shape, streamed and whole [S6.9]", async () => {
  const streamed = await replay("51-completions-stream");
  const piece = (words: string, finish_reason: string | null = null) => ({
    ...{ index: 0, text: words, logprobs: null, finish_reason },
  });
  expect(choicesOf(streamed.text)).toEqual([
    ...[piece("Hello"), piece(","), piece(" I"), piece("", "length"), usage(3, 3, cached(2))],
  ]);
  expectWholeStream(streamed);
  const { text: got, requestId, record } = await replay("51-completions-stream", { stream: false });
  expect(JSON.parse(got)).toMatchObject({
    ...{ id: `cmpl-${requestId}`, object: "text_completion", model, usage: usage(3, 3, cached(2)) },
    choices: [piece("Hello, I", "length")],
  });
  expect(record).toMatchObject({ promptTokens: 3, completionTokens: 3, source: "engine" });
});

const refusals: [name: string, status: number, error: object][] = [
  ["16-chat-max-tokens-neg", 400, { type: "invalid_request_error", param: "max_tokens" }],
  ["28-chat-temp-string", 400, { type: "invalid_request_error", param: "temperature" }],
  [
    "20-chat-n5-over-slots",
    400,
    { param: "n", message: "Invalid 'n': must be at most 2: this model's engine gives no more answers at once." },
  ],
  ["36-chat-bad-json", 400, { type: "invalid_request_error" }],
  ["38-chat-image-unsupported", 400, { type: "invalid_request_error" }],
  ["41-chat-response-format-bad", 400, { type: "invalid_request_error", param: "response_format.type" }],
  [
    "43-chat-json-schema-invalid",
    400,
    {
      param: "response_format",
      message: "Invalid 'response_format': must be a JSON Schema whose types are types of JSON.",
    },
  ],
  ["86-enable-thinking-string", 400, { type: "invalid_request_error" }],
  ["97-tool-logprobs-stream", 400, { type: "invalid_request_error", param: "logprobs" }],
  ["128-chat-on-embed-server", 400, { type: "invalid_request_error" }],
  ["130-key-missing", 500, { type: "server_error", code: "500" }],
];
test.each(refusals)("%s is reported in our own words, without a record [S4.13]", async (name, status, error) => {
  const [, request, code, body] = /^POST .*\n(.*)\n\nHTTP (\d+)\n[^]*?\n\n([^]*)$/.exec(recordingText(name))!;
  await using rig = await Rig.open((socket) => respond(socket, Number(code), body!), { dialect: "llama-server" });
  const parsed =
    name === "36-chat-bad-json" ? request! : JSON.stringify({ ...(JSON.parse(request!) as object), model });
  const answer = await rig.send("/v1/chat/completions", parsed).answer;
  expect(answer).toMatchObject({ status, ending: "complete" });
  const told = JSON.parse(answer.text) as { error: { message: string } };
  expect(told.error).toMatchObject(error);
  expect(body).not.toContain(told.error.message);
  expect(await rig.records()).toEqual([]);
});

test.each(["39-chat-context-overflow", "40-chat-context-overflow-stream"])(
  "%s reports both counts, streamed or not [S18.4]",
  async (name) => {
    const { status, text: got } = await replay(name);
    expect(status).toBe(400);
    const { error } = JSON.parse(got) as { error: { message: string; type: string } };
    expect(error.type).toBe("ContextWindowExceededError");
    expect(error.message).toMatch(/1024 tokens.*1520 in the messages/);
  },
);

test.each(["223-router-stream-cut-by-unload", "227-router-child-sigkill-mid-stream", "111-sigterm-mid-stream"])(
  "%s ends with an error event, is free, and never looks complete",
  async (name) => {
    const recorded = recordingText(name).replace("<<stream broken>>\n", "");
    const middle = recorded.lastIndexOf("data:");
    await using rig = await Rig.open(saying(recorded.slice(recorded.indexOf("data:"), middle)));
    const sent = rig.chat({ stream: true });
    await once(sent.stream, "head");
    writeChunk(rig.engine.asked[0]!, recorded.slice(middle));
    endEvents(rig.engine.asked[0]!);
    const answer = await sent.answer;
    expect(answer).toMatchObject({ status: 200, ending: "error" });
    expect(answer.text).not.toContain("[DONE]");
    expect(choicesOf(answer.text).at(-1)).toMatchObject({ type: "server_error", code: "500" });
    expect(await rig.records()).toMatchObject([{ outcome: "broken", promptTokens: 0, completionTokens: 0 }]);
  },
);

/** The bytes around the ends of events and some others; by night, every byte of the short one. */
test.each([
  ["51-completions-stream", process.env["WEICHE_NIGHTLY"] ? 1 : 7],
  ["21-chat-n2-stream", 23],
  ["91-tool-stream", 23],
])(
  "%s, cut anywhere before the end of its last finish, never looks complete and always releases its place [C2]",
  async (name, step) => {
    const { path, request, body } = readRecording(name);
    const bytes = Buffer.from(body);
    let length = 0;
    const script = (socket: Socket) => respondEvents(socket, bytes.subarray(0, length));
    await using rig = await Rig.open(script, { dialect: "llama-server", newsMsMax: 1 });
    const whole = bytes.indexOf("\n\n", bytes.lastIndexOf('"finish_reason":"'));
    for (length = 0; length <= bytes.length; length++) {
      if (length % step !== 0 && !/\n\n/.test(body.slice(length - 3, length + 3))) continue;
      const answer = await rig.send(path as NodePath, { ...request, model }).answer;
      const seemsWhole = answer.text.includes("[DONE]") || (answer.status === 200 && answer.ending === "complete");
      expect(seemsWhole, `cut at ${length}`).toBe(length >= whole);
      expect(answer.ending).toBe(answer.status === 200 && length < whole ? "error" : "complete");
    }
    await rig.quiet();
    expect(rig.bugs).toEqual([]);
    expect(
      rig.outbox.records.filter(({ outcome, completionTokens }) => outcome !== "finished" && completionTokens > 0),
    ).toEqual([]);
  },
);
