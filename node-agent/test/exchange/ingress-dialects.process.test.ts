/** Streams in the words of vLLM and SGLang, made from their sources because no recordings exist, from end to end. */
import { expect, test } from "vitest";
import { chatRules, choicesOf, Rig, type RigOptions } from "./ingress-rig.ts";
import { done, event, respond, usageOf } from "./scripted-engine.ts";

const text = (content: string) => ({ index: 0, delta: { content }, finish_reason: null });
const thought = (reasoning_content: string) => ({ index: 0, delta: { reasoning_content }, finish_reason: null });
const role = { index: 0, delta: { role: "assistant", content: "" }, finish_reason: null };
const finish = (finish_reason: string) => ({ index: 0, delta: {}, finish_reason });
const call = (piece: object) => ({ index: 0, delta: { tool_calls: [{ index: 0, ...piece }] }, finish_reason: null });

const vllmHead = { id: "chatcmpl-x", object: "chat.completion.chunk", created: 1, model: "served" };
function vllm(delta: object, end: object = { finish_reason: null }, completion = 1): string {
  const choice = { index: 0, delta, logprobs: null, ...end, token_ids: null };
  const usage = usageOf(9, completion);
  return event({ ...vllmHead, choices: [choice], prompt_token_ids: null, prompt_text: null, usage });
}
const usage = {
  ...usageOf(9, 5),
  ...{ prompt_tokens_details: { cached_tokens: 8 }, completion_tokens_details: { reasoning_tokens: 2 } },
};
const vllmUsage = event({ ...vllmHead, choices: [], usage });

const told = (stream: string) => choicesOf(stream.replace(done, ""));

async function answer(stream: string, body: object, options: RigOptions = { dialect: "vllm" }) {
  await using rig = await Rig.open(stream, options);
  const got = await rig.chat({ stream: true, stream_options: { include_usage: true }, ...body }).answer;
  await rig.quiet();
  return { ...got, records: rig.outbox.records };
}

test("vLLM: reasoning under its other name, a chunk at the border, and text in the chunk of the finish are read", async () => {
  const stream =
    vllm({ role: "assistant", content: "" }, {}, 0) +
    vllm({ reasoning: "Hm" }) +
    vllm({ reasoning: "m.", content: "So" }, {}, 3) +
    vllm({ content: " 42" }, { finish_reason: "stop", stop_reason: null }, 5) +
    vllmUsage +
    done;
  const { records, ending, text: all } = await answer(stream, {});
  expect(told(all)).toEqual([role, thought("Hm"), thought("m."), text("So"), text(" 42"), finish("stop"), usage]);
  expect(ending).toBe("complete");
  expect(all).not.toMatch(/served|chatcmpl-x|token_ids|stop_reason|prompt_text|"created":1,/);
  expect(records).toMatchObject([{ promptTokens: 9, completionTokens: 5, reasoningTokens: 2, cachedTokens: 8 }]);
});

test("vLLM: a named function that ends with stop becomes a call", async () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const stream =
    vllm({ role: "assistant", content: "" }) +
    vllm({
      tool_calls: [{ id: "chatcmpl-tool-1", type: "function", index: 0, function: { name: "f", arguments: "" } }],
    }) +
    vllm({ tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] }, { finish_reason: "stop" }) +
    vllmUsage +
    done;
  const { text: all } = await answer(stream, { tools, tool_choice: { type: "function", function: { name: "f" } } });
  expect(told(all)).toEqual([
    ...[role, call({ id: "chatcmpl-tool-1", type: "function", function: { name: "f", arguments: "" } })],
    ...[call({ function: { arguments: '{"a":1}' } }), finish("tool_calls"), usage],
  ]);
});

test("vLLM: an aborted answer is unfinished, even if its error event is followed by a terminator", async () => {
  const said = vllm({ role: "assistant", content: "" }) + vllm({ content: "So" });
  const aborted = await answer(said + vllm({}, { finish_reason: "abort", stop_reason: null }) + vllmUsage + done, {});
  expect(aborted.text).not.toContain("[DONE]");
  const error = { error: { message: "EngineCore encountered an issue", type: "InternalServerError", code: 500 } };
  const died = await answer(said + event(error) + done, {});
  expect(died.text).not.toMatch(/\[DONE\]|EngineCore/);
  for (const { status } of [aborted, died]) expect(status).toBe(500);
});

test("vLLM: an error as the first event of a 200 becomes a status", async () => {
  const error = { message: "This model's maximum context length is 1024 tokens.", type: "BadRequestError", code: 400 };
  const { status, text: all } = await answer(event({ error }) + done, {});
  expect(status).toBe(400);
  expect(JSON.parse(all)).toMatchObject({ error: { type: "ContextWindowExceededError" } });
});

const overflow = JSON.stringify({
  error: {
    message:
      "This model's maximum context length is 1024 tokens. However, you requested 100 output tokens and your prompt contains at least 925 input tokens, for a total of at least 1025 tokens.",
    ...{ type: "BadRequestError", param: "input_tokens", code: 400 },
  },
});

test.each([
  [
    "counts the prompt",
    200,
    '{"count":3000,"max_model_len":1024,"tokens":[]}',
    /1024 tokens.* 3100 tokens \(3000 in the messages, 100 in/,
  ],
  ["cannot count", 404, "", /at least 1025 tokens \(at least 925 in the messages, 100 in/],
])("vLLM: an overflow is reported with both counts when it %s [S18.4]", async (_name, status, count, message) => {
  await using rig = await Rig.open(
    (socket, { path }) => respond(socket, path === "/tokenize" ? status : 400, path === "/tokenize" ? count : overflow),
    { dialect: "vllm" },
  );
  const got = await rig.chat({ max_tokens: 100 }).answer;
  expect(got.status).toBe(400);
  expect(JSON.parse(got.text)).toMatchObject({
    error: { type: "ContextWindowExceededError", message: expect.stringMatching(message) as string },
  });
  expect(rig.engine.saw[1]).toMatchObject({
    path: "/tokenize",
    body: { messages: [{ content: "hi" }], add_generation_prompt: true },
  });
});

const sglangHead = { id: "r", object: "chat.completion.chunk", model: "served" };
let created = 0;
const sglang = (delta: object, finish_reason: string | null = null) =>
  event({
    ...{ ...sglangHead, created: created++ },
    choices: [
      { index: 0, delta: { reasoning_content: null, ...delta }, logprobs: null, finish_reason, matched_stop: null },
    ],
  });

test("SGLang: null fields, a separate chunk for the finish and a chunk of a kind that only SGLang has are read", async () => {
  const stream =
    sglang({ role: "assistant", content: "" }) +
    sglang({ reasoning_content: "Hm", content: null }) +
    sglang({ content: "42" }) +
    sglang({}, "stop") +
    event({ ...sglangHead, created: 9, choices: [], sglext: { x: 1 } }) +
    event({ ...sglangHead, created: 9, choices: [], usage: usage }) +
    done;
  const { text: all, records } = await answer(stream, {}, { dialect: "openai", cachePrompts: "shared" });
  expect(told(all)).toEqual([role, thought("Hm"), text("42"), finish("stop"), usage]);
  expect(all).not.toMatch(/sglext|matched_stop|null,"content"/);
  expect(new Set(all.match(/"created":\d+/g))).toHaveProperty("size", 1);
  expect(records).toMatchObject([{ source: "engine", promptTokens: 9, completionTokens: 5 }]);
});

test("a model that cannot be forced gets tool_calls as its finish, as the service promises [S8.8]", async () => {
  const rules = { ...chatRules, toolsEnforced: false };
  const tools = [{ type: "function", function: { name: "f" } }];
  const stream = sglang({ role: "assistant", content: "No." }) + sglang({}, "stop") + done;
  const { text: all } = await answer(stream, { tools, tool_choice: "required", stream_options: null }, { rules });
  expect(told(all)).toEqual([role, text("No."), finish("tool_calls")]);
});

test("a body with calls and blank lines before them has no content", async () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const call = { tool_calls: [{ index: 0, function: { name: "f", arguments: "{}" } }] };
  const stream = sglang({ content: "\n\n" }) + sglang(call, "tool_calls") + done;
  const { text: whole } = await answer(stream, { tools, stream: false, stream_options: null }, { dialect: "openai" });
  expect(JSON.parse(whole)).toMatchObject({ choices: [{ message: { content: null } }] });
});

test("a tool call without an id from the engine gets one, in a stream and in a body", async () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const stream =
    sglang({ tool_calls: [{ index: 0, function: { name: "f", arguments: { a: 1 } } }] }, "tool_calls") + done;
  await using rig = await Rig.open(stream);
  const { requestId, answer: got } = rig.chat({ tools });
  const { choices } = JSON.parse((await got).text) as { choices: unknown };
  expect(choices).toEqual([
    {
      ...{ index: 0, logprobs: null, finish_reason: "tool_calls" },
      message: {
        ...{ role: "assistant", content: null },
        tool_calls: [{ id: `call-${requestId}-0-0`, type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
    },
  ]);
});

test("log probabilities of a completion have its own shape, whatever the engine's shape", async () => {
  const chatShape = {
    content: [
      {
        id: 1,
        token: "He",
        logprob: -1,
        bytes: [72, 101],
        top_logprobs: [{ id: 1, token: "He", logprob: -1, bytes: [] }],
      },
    ],
  };
  const ownShape = { tokens: ["llo"], token_logprobs: [-2], top_logprobs: [{ llo: -2 }], text_offset: [2], extra: 1 };
  const piece = (words: string, logprobs: object) =>
    event({ choices: [{ index: 0, text: words, logprobs, finish_reason: null }] });
  const stream =
    piece("He", chatShape) +
    piece("llo", ownShape) +
    event({ choices: [{ index: 0, text: "", finish_reason: "stop" }] }) +
    done;
  await using rig = await Rig.open(stream);
  const got = await rig.send("/v1/completions", { prompt: "p", logprobs: 1 }).answer;
  expect(JSON.parse(got.text)).toMatchObject({
    choices: [
      {
        text: "Hello",
        logprobs: {
          ...{ tokens: ["He", "llo"], token_logprobs: [-1, -2] },
          ...{ top_logprobs: [{ He: -1 }, { llo: -2 }], text_offset: [0, 2] },
        },
      },
    ],
  });
});

/** Deviations in the calls of known engines, as chunks of a stream. Each means the same two calls. */
const variants: [variant: string, choices: object[]][] = [
  ["one index for both", [piece(0, "a", "f", "{}"), piece(0, "b", "f", '{"a":1}')]],
  ["both in one chunk, without indexes", [{ tool_calls: [bare("a", "f", "{}"), bare("b", "f", '{"a":1}')] }]],
  ["the index in the function", [inner(0, "a", "f", "{}"), inner(1, "b", "f", '{"a":1}')]],
  ["negative indexes, arguments as objects", [piece(-1, "a", "f", {}), piece(-1, "b", "f", { a: 1 })]],
  ["no arguments for the first", [piece(0, "a", "f", ""), piece(1, "b", "f", '{"a":'), piece(1, null, null, "1}")]],
  ["null for no arguments", [piece(0, "a", "f", null), piece(1, "b", "f", '{"a":1}')]],
  ["the word null for no arguments", [piece(0, "a", "f", "null"), piece(1, "b", "f", '{"a":1}')]],
  ["a call that is not a list", [{ tool_calls: bare("a", "f", "{}") }, { tool_calls: bare("b", "f", '{"a":1}') }]],
  ["arguments twice", [piece(0, "a", "f", "{}"), piece(1, "b", "f", '{"a":1}'), piece(1, null, null, '{"a":1}')]],
  [
    "an empty object before the arguments",
    [piece(0, "a", "f", "{}"), piece(1, "b", "f", "{}"), piece(1, "b", "", '{"a":1}')],
  ],
  [
    "JSON text within a JSON string",
    [piece(0, "a", "f", '"{}"'), piece(1, "b", "f", '"{\\"a'), piece(1, null, null, '\\":1}"')],
  ],
  ["an id that is a number", [piece(0, "a", "f", "{}"), piece(1, "b", "f", '{"a":'), piece(1, 7, null, "1}")]],
];

function bare(id: string | number | null, name: string | null, given: unknown) {
  return { id, type: "function", function: { name, arguments: given } };
}
function piece(index: number, ...given: Parameters<typeof bare>) {
  return { tool_calls: [{ index, ...bare(...given) }] };
}
function inner(index: number, ...given: Parameters<typeof bare>) {
  const { function: called, ...rest } = bare(...given);
  return { tool_calls: [{ ...rest, function: { index, ...called } }] };
}

interface Told {
  readonly index?: number;
  readonly id?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
}

/** Returns the calls of a stream as clients assemble them. */
function joined(stream: string): Told[] {
  const calls: Told[] = [];
  for (const choice of told(stream) as { delta?: { tool_calls?: Told[] } }[])
    for (const { index, ...part } of choice.delta?.tool_calls ?? []) {
      const before = calls[index!];
      const text = (before?.function.arguments ?? "") + part.function.arguments;
      calls[index!] = { ...(before ?? part), function: { ...(before ?? part).function, arguments: text } };
    }
  return calls;
}

const tools = [{ type: "function", function: { name: "f" } }];
const twoCalls = [bare("a", "f", "{}"), bare("b", "f", '{"a":1}')];

test.each(
  (["vllm", "llama-server", "openai"] as const).flatMap((dialect) => variants.map((row) => [dialect, ...row] as const)),
)("%s: calls are complete, streamed and not, if an engine sends %s [S5.6]", async (dialect, _variant, deltas) => {
  const chunks = [...deltas.map((delta) => ({ index: 0, delta, finish_reason: "" })), finish("tool_calls")];
  const stream = chunks.map((choice) => event({ choices: [choice] })).join("") + vllmUsage + done;
  const streamed = await answer(stream, { tools }, { dialect });
  expect(joined(streamed.text)).toEqual(twoCalls);
  expect(streamed.ending).toBe("complete");
  const collected = await answer(stream, { tools, stream: false, stream_options: undefined }, { dialect });
  expect(JSON.parse(collected.text)).toMatchObject({ choices: [{ message: { tool_calls: twoCalls } }] });
});

test("unknown fields and reasons end no answer, and an unknown reason is reported", async () => {
  const chunk = (delta: object, reason: string | null) =>
    `event: message\nid: 1\nretry: 500\ndata: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\ndata:\n\n`;
  const stream = chunk({ content: "So" }, "") + event({}) + chunk({ content: "!" }, "eos_token") + vllmUsage;
  await using rig = await Rig.open(`${stream}data: [DONE] \r\n\r\n`, { dialect: "openai" });
  const got = await rig.chat({ stream: true }).answer;
  expect(told(got.text)).toEqual([role, text("So"), text("!"), finish("stop")]);
  expect(rig.unknownFinishes).toEqual(["eos_token"]);
  expect(rig.faults).toEqual([]);
});
