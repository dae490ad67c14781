/** Chunks that differ from the convention without another meaning, and chunks without any meaning, from end to end. */
import { expect, test } from "vitest";
import { chatRules, choicesOf, model, Rig } from "./ingress-rig.ts";
import { done, event, respond, usageOf } from "./scripted-engine.ts";

const dialects = ["vllm", "llama-server", "openai"] as const;
const tools = [{ type: "function", function: { name: "f" } }];

const said = (content: unknown, more: object = {}) => ({ index: 0, delta: { content }, ...more });
const end = { index: 0, delta: {}, finish_reason: "stop" };
const chunk = (choice: unknown, more: object = {}) => ({ choices: [choice], ...more });

/** Each means the answer "So 42". */
const oddities: [oddity: string, events: object[]][] = [
  [
    "no index",
    [chunk({ delta: { content: "So" } }), chunk({ delta: { content: " 42" } }), chunk({ finish_reason: "stop" })],
  ],
  [
    "an index that counts",
    [1, 2, 3].map((index, at) =>
      chunk({ index, delta: { content: ["So", " 4", "2"][at] }, finish_reason: at === 2 ? "stop" : null }),
    ),
  ],
  [
    "an index that is null or text",
    [chunk(said("So", { index: null })), chunk(said(" 42", { index: "0" })), chunk(end)],
  ],
  [
    "content as a list of parts",
    [
      chunk(said([{ type: "text", text: "So" }, " 4"])),
      chunk(
        said([
          { type: "reference", reference_ids: [1] },
          { type: "text", text: "2" },
        ]),
      ),
      chunk(said([])),
      chunk(end),
    ],
  ],
  [
    "a message in place of a delta",
    [chunk({ index: 0, message: { role: "assistant", content: "So 42", tool_calls: [] }, finish_reason: "stop" })],
  ],
  [
    "the message again in the last chunk",
    [
      chunk(said("So 42")),
      chunk({ ...end, message: { content: "So 42" } }),
      chunk({ index: 0, delta: null, message: { content: "So 42" } }),
    ],
  ],
  [
    "null for tool calls, as a list and in one",
    [
      chunk({ ...said("So"), delta: { content: "So", tool_calls: [null] } }),
      chunk({ index: 0, delta: { content: " 42", tool_calls: null, function_call: null } }),
      chunk(end),
    ],
  ],
  [
    "false or empty errors",
    [false, null, {}, "", [], { message: "", type: "", param: null, code: 0 }]
      .map((error, at) => chunk(said(["So", " ", "4", "2"][at] ?? ""), { error }))
      .concat(chunk(end)),
  ],
  [
    "no choices, null as choices, null as a choice",
    [
      { id: "x" },
      { choices: null },
      chunk(said("So 42")),
      { choices: [null] },
      chunk(end),
      { choices: null, usage: null },
    ],
  ],
  [
    "null, an empty list or nothing as a delta",
    [
      chunk({ index: 0, delta: null }),
      chunk({ index: 0, delta: [] }),
      chunk(said("So 42")),
      chunk({ index: 0, finish_reason: "stop" }),
      chunk({ index: 0, delta: null, finish_reason: null }),
    ],
  ],
  [
    "the role with each chunk",
    ["So", " 42"]
      .map((content) => chunk({ index: 0, delta: { role: "assistant", content, refusal: null } }))
      .concat(chunk(end)),
  ],
  [
    "the usage with each chunk, empty or growing",
    [
      chunk(said("So"), { usage: {} }),
      chunk(said(" 42"), { usage: usageOf(9, 2) }),
      chunk(end, { usage: usageOf(9, 2) }),
    ],
  ],
  [
    "log probabilities without tokens, also after the finish",
    [
      chunk(said("So", { logprobs: {} })),
      chunk(said(" 42", { logprobs: { content: [] } })),
      chunk(end),
      chunk({ ...end, logprobs: { content: null, tokens: [] } }),
      chunk({ index: 0, delta: {}, logprobs: [] }),
    ],
  ],
  [
    "a finish reason with each chunk",
    [
      chunk(said("", { finish_reason: "stop" })),
      chunk(said("So", { finish_reason: "stop" })),
      chunk(said(" 42", { finish_reason: "stop" })),
      chunk(end),
    ],
  ],
  [
    "the finish reason twice, and false before",
    [chunk(said("So", { finish_reason: false })), chunk(said(" 42", { finish_reason: "stop" })), chunk(end)],
  ],
];

const eventsOf = (events: readonly object[]) => events.map(event).join("");
const combined = (rows: [string, object[]][]) =>
  dialects.flatMap((dialect) => rows.map((row) => [dialect, ...row] as const));

/** Returns the message that a client reads from a stream and from a body. They must be equal. */
async function messagesOf(stream: string, dialect: (typeof dialects)[number], body: object = {}) {
  await using rig = await Rig.open(stream, { dialect });
  const streamed = await rig.chat({ stream: true, logprobs: true, ...body }).answer;
  const whole = await rig.chat({ logprobs: true, ...body }).answer;
  expect([streamed.ending, whole.status, rig.faults]).toEqual(["complete", 200, []]);
  const choices = choicesOf(streamed.text.replace(done, "")) as {
    delta: Record<string, string>;
    finish_reason: unknown;
  }[];
  const text = (field: string) => choices.map(({ delta }) => delta[field] ?? "").join("");
  const calls = choices.flatMap(({ delta }) => (delta["tool_calls"] as unknown as object[] | undefined) ?? []);
  const [choice] = (
    JSON.parse(whole.text) as { choices: { message: Record<string, unknown>; finish_reason: string }[] }
  ).choices;
  return {
    streamed: {
      content: text("content"),
      reasoning: text("reasoning_content"),
      calls,
      finish: choices.at(-1)!.finish_reason,
    },
    whole: choice!,
  };
}

test.each(combined(oddities))(
  "%s: an engine that sends %s gives the same answer [C6 S5.7]",
  async (dialect, _oddity, events) => {
    const { streamed, whole } = await messagesOf(eventsOf(events) + done, dialect);
    expect(streamed).toEqual({ content: "So 42", reasoning: "", calls: [], finish: "stop" });
    expect(whole).toMatchObject({ message: { content: "So 42" }, finish_reason: "stop" });
  },
);

test("parts of the content that are reasoning become reasoning", async () => {
  const thought = (thinking: unknown) => chunk(said([{ type: "thinking", thinking }]));
  const parts = [
    thought([{ type: "text", text: "H" }]),
    thought("m"),
    chunk(said([{ type: "text", text: "42" }])),
    chunk(end),
  ];
  const { streamed, whole } = await messagesOf(eventsOf(parts) + done, "openai");
  expect(streamed).toMatchObject({ content: "42", reasoning: "Hm" });
  expect(whole.message).toMatchObject({ content: "42", reasoning_content: "Hm" });
});

test("a completion without indexes, and embeddings without indexes, are read in their order", async () => {
  const pieces = [chunk({ text: "So" }), chunk({ text: " 42", index: 1 }), chunk({ text: "", finish_reason: "stop" })];
  await using completions = await Rig.open(eventsOf(pieces) + done);
  const { text: completion } = await completions.send("/v1/completions", { prompt: "p" }).answer;
  expect(JSON.parse(completion)).toMatchObject({ choices: [{ text: "So 42" }] });
  const data = [[0, 1], [1, 0]].map((embedding) => ({ embedding })); // prettier-ignore
  const rules = {
    ...chatRules,
    category: "embeddings",
    embeddings: { inputTokens: 512, dimensions: { min: 2, max: 2, default: 2 } },
  } as const;
  await using embeddings = await Rig.open((socket) => respond(socket, 200, JSON.stringify({ data })), { rules });
  const { text: vectors } = await embeddings.send("/v1/embeddings", { model, input: ["a", "b"] }).answer;
  expect(JSON.parse(vectors)).toMatchObject({ data });
});

const called = (part: object) => chunk({ index: 0, delta: part });
const old = [
  { name: "f", arguments: '{"a"' },
  { name: "", arguments: ":1}" },
];
const oldEnd = chunk({ index: 0, delta: { function_call: null }, finish_reason: "function_call" });
const calls: [variant: string, events: object[]][] = [
  ["a function_call alone", [...old.map((part) => called({ function_call: part })), oldEnd]],
  [
    "a function_call beside tool_calls",
    [
      ...old.map((part) => called({ function_call: part, tool_calls: [{ index: 0, id: "a", function: part }] })),
      oldEnd,
    ],
  ],
  [
    "null beside a call, and null functions",
    [
      called({ tool_calls: [null, { index: 0, id: "a", function: { name: "f", arguments: '{"a":1}' } }] }),
      called({ tool_calls: [{ index: 0, id: null, function: null }] }),
      chunk({ ...end, finish_reason: "tool_calls" }),
    ],
  ],
  [
    "a whole message with calls",
    [
      chunk({
        index: 0,
        message: { content: null, tool_calls: [{ id: "a", function: { name: "f", arguments: { a: 1 } } }] },
        finish_reason: "tool_calls",
      }),
    ],
  ],
];

test.each(combined(calls))("%s: a call is complete if an engine sends %s [S5.6]", async (dialect, _variant, events) => {
  const { streamed, whole } = await messagesOf(eventsOf(events) + done, dialect, { tools });
  expect(streamed.finish).toBe("tool_calls");
  expect(streamed.calls.map((call) => (call as { function: { arguments: string } }).function.arguments).join("")).toBe(
    '{"a":1}',
  );
  expect(whole.message["tool_calls"]).toMatchObject([{ function: { name: "f", arguments: '{"a":1}' } }]);
});

const argued = (json: unknown, tokens: number) => {
  const part = { tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: json } }] };
  return chunk({ index: 0, delta: part }, { usage: usageOf(9, tokens) });
};
const calledUp = (tokens: number) => chunk({ ...end, finish_reason: "tool_calls" }, { usage: usageOf(9, tokens) });

test.each([
  { what: "a cut call at the limit", json: '{"a":"b', tokens: 4, finish: "length", told: '{"a":"b' },
  { what: "an empty call at the limit", json: "{}", tokens: 4, finish: "length", told: "{}" },
  { what: "a whole call at the limit", json: '{"a":1}', tokens: 4, finish: "tool_calls", told: '{"a":1}' },
  { what: "a call without its last brace", json: '{"a":1', tokens: 3, finish: "tool_calls", told: '{"a":1}' },
  { what: "a call without its first brace", json: '"a":1}', tokens: 3, finish: "tool_calls", told: '{"a":1}' },
  { what: "a call with a list as arguments", json: [1], tokens: 3, finish: "tool_calls", told: "[1]" },
])("$what ends with $finish [S5.6 S5.7]", async ({ json, tokens, finish, told }) => {
  const stream = eventsOf([argued(json, tokens), calledUp(tokens)]) + done;
  const { streamed, whole } = await messagesOf(stream, "vllm", { tools, max_tokens: 4 });
  const given = streamed.calls as { function: { arguments: string } }[];
  const streamedJson = given.map((call) => call.function.arguments).join("");
  expect([streamed.finish, streamedJson]).toEqual([finish, told]);
  expect(whole).toMatchObject({ message: { tool_calls: [{ function: { arguments: told } }] }, finish_reason: finish });
});

/** Each has no meaning, or may have several. */
const unreadable: [what: string, choices: number, events: object[]][] = [
  ["no index for one of two answers", 2, [chunk({ delta: { content: "So" } })]],
  ["two answers though one was requested", 1, [chunk(said("So")), chunk(said("No", { index: 1 })), chunk(said(" 42"))]],
  ["two answers in one chunk though one was requested", 1, [{ choices: [said("So"), said("No", { index: 1 })] }]],
  ["a number as content", 1, [chunk(said(42))]],
  ["a part of content without text", 1, [chunk(said([{ type: "image" }]))]],
  ["an object as choices", 1, [{ choices: said("So") }]],
  ["text as a delta", 1, [chunk({ index: 0, delta: "So" })]],
  ["text as tool calls", 1, [called({ tool_calls: "f" })]],
  ["an error with words", 1, [chunk(said("So"), { error: { message: "out of memory", code: 0 } })]],
];

test.each(unreadable)("%s is a fault of the engine [C6]", async (_what, n, events) => {
  await using rig = await Rig.open(eventsOf([...events, chunk(end)]) + done);
  const { status } = await rig.chat({ n }).answer;
  expect(status).toBe(500);
  expect(rig.faults).toHaveLength(1);
  expect(rig.bugs).toEqual([]);
});
