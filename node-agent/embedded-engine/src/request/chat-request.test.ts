import { describe, expect, test } from "vitest";
import { readChatRequest } from "./chat-request.ts";
import { asRequestError, RequestError } from "./request-error.ts";

const messages = [{ role: "user", content: "Hi" }];
const read = (more: object = {}) => readChatRequest({ messages, ...more });
const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const two = [tool("a"), tool("b")];

test("parameters that a client leaves out have OpenAI's defaults, not the engine's", () => {
  expect(read()).toMatchObject({
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, presencePenalty: 0, frequencyPenalty: 0 },
    choices: 1,
    stop: [],
    stream: false,
    thinking: false,
    tools: [],
  });
  expect(read().maxTokens).toBeUndefined();
});

test("null counts as absent, and unknown fields are ignored", () => {
  const nothing = {
    temperature: null,
    stop: null,
    tools: null,
    response_format: null,
    max_tokens: null,
    logprobs: null,
  };
  expect(read({ ...nothing, store: true })).toEqual(read());
});

test("64 stop strings are accepted, as many as an agent passes on, and no more", () => {
  const stop = Array.from({ length: 64 }, (_, index) => `${index}`);
  expect(read({ stop }).stop).toEqual(stop);
  expect(() => read({ stop: [...stop, "64"] })).toThrow("'stop': must be an array of at most 64 items");
});

test("the newer name of the token limit takes precedence", () => {
  expect(read({ max_tokens: 5, max_completion_tokens: 3 }).maxTokens).toBe(3);
});

test.each([
  [{ enable_thinking: true }, undefined, true],
  [{ enable_thinking: false }, "high", false],
  [{ thinking: true }, undefined, true],
  [undefined, "low", true],
  [undefined, "none", false],
  [undefined, undefined, false],
])("template arguments %j and effort %j set reasoning to %j", (chat_template_kwargs, reasoning_effort, thinking) => {
  expect(read({ chat_template_kwargs, reasoning_effort }).thinking).toBe(thinking);
});

describe("tools", () => {
  test("are all offered, and all may be called", () => {
    expect(read({ tools: two })).toMatchObject({
      tools: [{ name: "a" }, { name: "b" }],
      toolRequired: false,
      calls: "many",
    });
    expect(read({ tools: two, tool_choice: "required", parallel_tool_calls: false })).toMatchObject({
      toolRequired: true,
      calls: "one",
    });
  });

  test("do not reach the model if none may be called", () => {
    expect(read({ tools: two, tool_choice: "none" })).toMatchObject({ toolDefinitions: [], tools: [] });
  });

  test("with a named one allow one call of it, and the model sees all", () => {
    const named = read({ tools: two, tool_choice: { type: "function", function: { name: "b" } } });
    expect(named).toMatchObject({ tools: [{ name: "b" }], toolRequired: true, calls: "one" });
    expect(named.toolDefinitions).toHaveLength(2);
  });

  test("an earlier call reaches the template with its arguments as an object", () => {
    const calls = [{ id: "1", type: "function", function: { name: "a", arguments: '{"x": 1}' } }];
    const earlier = [{ role: "assistant", content: null, tool_calls: calls }];
    expect(read({ messages: [...messages, ...earlier] }).messages[1]).toMatchObject({
      content: "",
      tool_calls: [{ function: { name: "a", arguments: { x: 1 } } }],
    });
  });
});

test("text parts are joined, and the newer name for system is known", () => {
  const parts = [
    { type: "text", text: "a" },
    { type: "text", text: "b" },
  ];
  expect(read({ messages: [{ role: "developer", content: parts }] }).messages).toEqual([
    { role: "system", content: "a\nb" },
  ]);
});

test.each([
  [{ messages: [] }, "messages"],
  [{ messages: "Hi" }, "messages"],
  [{ messages: [{ role: "wizard", content: "x" }] }, "messages[0].role"],
  [
    { messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] },
    "messages[0].content[0].image_url.url",
  ],
  [{ messages: [{ role: "user", content: [image] }] }, "messages[0].content[0].image_url.url"],
  [{ messages: [{ role: "user", content: [{ type: "audio" }] }] }, "messages[0].content[0].type"],
  [{ temperature: 3 }, "temperature"],
  [{ temperature: "1" }, "temperature"],
  [{ top_p: -1 }, "top_p"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ n: 1.5 }, "n"],
  [{ stop: "" }, "stop"],
  [{ stop: ["a", 1] }, "stop[1]"],
  [{ stop: ["a", ""] }, "stop[1]"],
  [{ max_tokens: 2 ** 31 + 1 }, "max_tokens"],
  [{ seed: 2 ** 64 }, "seed"],
  [{ top_k: -2 }, "top_k"],
  [{ top_logprobs: 3 }, "top_logprobs"],
  [{ stream: "yes" }, "stream"],
  [{ tools: [{ type: "function" }] }, "tools[0].function"],
  [{ tool_choice: "required" }, "tool_choice"],
  [{ tools: two, tool_choice: { type: "function", function: { name: "c" } } }, "tool_choice"],
  [{ tools: two, tool_choice: "sometimes" }, "tool_choice"],
  [{ response_format: { type: "xml" } }, "response_format.type"],
  [{ response_format: { type: "json_schema" } }, "response_format.json_schema"],
  [{ chat_template_kwargs: { enable_thinking: "true" } }, "chat_template_kwargs.enable_thinking"],
  [{ chat_template_kwargs: { thinking: "true" } }, "chat_template_kwargs.thinking"],
])("%j is refused with the name of the field", (more, param) => {
  let refusal: unknown;
  try {
    read(more);
  } catch (error) {
    refusal = asRequestError(error);
  }
  expect(refusal).toBeInstanceOf(RequestError);
  expect(refusal).toMatchObject({ status: 400, type: "invalid_request_error", param });
});
