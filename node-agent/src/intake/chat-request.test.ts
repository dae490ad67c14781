import { expect, test } from "vitest";
import { messages, said, scope } from "../../test/intake/said-request.ts";
import { dialects } from "../engines/dialects/all.ts";
import { readCompletionRequest } from "./completion-request.ts";

const f = { type: "function", function: { name: "f" } };
const named = { type: "function", function: { name: "g" } };
const always = {
  model: "m",
  messages,
  ...{ temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, n: 1, stream: true },
  chat_template_kwargs: { enable_thinking: false, thinking: false },
};
const usageOptions = { include_usage: true, continuous_usage_stats: true };

test("every dialect gets the defaults for parameters that the client left out", () => {
  expect(said({})).toEqual({ ...always, stream_options: usageOptions });
  expect(said({}, {}, "vllm")).toEqual({
    ...always,
    stream_options: usageOptions,
    ...{ top_k: 0, min_p: 0, repetition_penalty: 1 },
  });
  expect(said({}, {}, "llama-server")).toEqual({
    ...always,
    stream_options: { include_usage: true },
    ...{ top_k: 0, min_p: 0, timings_per_token: true, return_progress: true, cache_prompt: true },
  });
});

test("a completion gets the same defaults, with 16 tokens as its length", () => {
  const request = readCompletionRequest({ prompt: "p", logprobs: 0, echo: true, suffix: "s", best_of: 9 }, scope());
  const { messages: _, chat_template_kwargs: _switch, ...rest } = always;
  const body = JSON.parse(JSON.stringify(dialects.openai.completionBody(request))) as object;
  expect(body).toEqual({ ...rest, prompt: "p", max_tokens: 16, logprobs: 0, stream_options: usageOptions });
  expect(dialects["llama-server"].completionBody(request)).toMatchObject({ logprobs: 1, top_k: 0 });
});

test("a prompt that is a list of one text equals that text", () => {
  expect(readCompletionRequest({ prompt: ["p"] }, scope())).toEqual(readCompletionRequest({ prompt: "p" }, scope()));
});

test("max_completion_tokens is ignored in a completion, whatever its value", () => {
  const request = (more: object) => readCompletionRequest({ prompt: "p", max_tokens: 5, ...more }, scope());
  for (const max_completion_tokens of [2, "x"]) expect(request({ max_completion_tokens })).toEqual(request({}));
});

test("every parameter of the service reaches the engine [D7]", () => {
  const tools = [{ type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } }];
  const schema = { type: "json_schema", json_schema: { name: "s", schema: { type: "object" }, strict: true } };
  const body = {
    ...{ max_tokens: 5, temperature: 0, top_p: 0.5, stop: ["a", "b"], n: 3, seed: 7, presence_penalty: -2 },
    ...{ frequency_penalty: 2, logprobs: true, top_logprobs: 20, tools, tool_choice: "required" },
    response_format: schema,
  };
  expect(said(body)).toEqual({ ...always, ...body, stream_options: usageOptions });
});

test("nothing else reaches the engine, at any depth [D7 S4.17]", () => {
  const secret = { canary: 1 };
  const text = JSON.stringify(
    said({
      ...{ canary: 1, model: "other", user: "u", cache_salt: "x", priority: 1, grammar: "g", n_predict: 9, top_k: 1 },
      ...{
        logit_bias: { 1: 1 },
        echo: true,
        chat_template: "t",
        stream_options: { include_usage: true, ...secret },
      },
      chat_template_kwargs: { enable_thinking: true, chat_template: "t", ...secret },
      messages: [
        { role: "system", content: "s", name: "n", ...secret },
        { role: "user", content: [{ type: "text", text: "t", ...secret }], ...secret },
        {
          ...{ role: "assistant", content: null, reasoning_content: "r", ...secret },
          tool_calls: [
            { id: "i", type: "function", index: 0, ...secret, function: { name: "f", arguments: "{}", ...secret } },
          ],
        },
        { role: "tool", tool_call_id: "i", content: "c", ...secret },
      ],
      tools: [{ type: "function", ...secret, function: { name: "f", strict: true, ...secret } }],
      response_format: { type: "json_object", ...secret },
    }),
  );
  expect(text).not.toMatch(
    /canary|"other"|salt|priority|grammar|n_predict|top_k|logit_bias|echo|parallel|chat_template"|"n":"n"/,
  );
  expect(text).not.toMatch(/reasoning_content|strict/);
  expect(text).toContain('{"role":"assistant","content":"","tool_calls":[{"id":"i","type":"function","function"');
});

test("a developer message reaches the model as a system message", () => {
  const told = said({ messages: [{ role: "developer", content: [{ type: "text", text: "d" }] }, ...messages] });
  expect(told["messages"]).toEqual([{ role: "system", content: [{ type: "text", text: "d" }] }, ...messages]);
});

test("a schema keeps all its members except __proto__ [D7]", () => {
  const parameters = JSON.parse(
    '{"constructor":1,"properties":{"__proto__":{"x":1},"a":[{"__proto__":2,"b":3}]}}',
  ) as object;
  const tools = [{ type: "function", function: { name: "f", parameters } }];
  expect(JSON.stringify(said({ tools })["tools"])).toContain('{"constructor":1,"properties":{"a":[{"b":3}]}}');
});

test("an unknown parameter is ignored, whatever its value", () => {
  for (const user of [false, 1, "x"]) expect(said({ user })).toEqual(said({}));
});

test("null is the same as absent", () => {
  const names =
    "max_tokens max_completion_tokens temperature top_p stop n seed presence_penalty frequency_penalty logprobs top_logprobs stream stream_options tools tool_choice response_format reasoning_effort chat_template_kwargs";
  expect(said(Object.fromEntries(names.split(" ").map((name) => [name, null])))).toEqual(said({}));
});

test("max_completion_tokens takes precedence, and is sent under the name that all engines know [S4.4]", () => {
  expect(said({ max_completion_tokens: 2, max_tokens: 5 })).toMatchObject({ max_tokens: 2 });
});

test("empty stop strings are removed", () => {
  expect(said({ stop: ["", "x"] })["stop"]).toEqual(["x"]);
  expect(said({ stop: "" })).not.toHaveProperty("stop");
});

const wrong: [param: string, body: object][] = [
  ["max_tokens", { max_tokens: 0 }],
  ["max_tokens", { max_tokens: "5" }],
  ["temperature", { temperature: 2.1 }],
  ["top_p", { top_p: -0.1 }],
  ["n", { n: 129 }],
  ["n", { n: 1.5 }],
  ["seed", { seed: 0.5 }],
  ["stop[0]", { stop: [1] }],
  ["stop", { stop: Array.from({ length: 65 }, () => "x") }],
  ["presence_penalty", { presence_penalty: 3 }],
  ["top_logprobs", { top_logprobs: 21, logprobs: true }],
  ["top_logprobs", { top_logprobs: 1 }],
  ["stream", { stream: 1 }],
  ["messages", { messages: [] }],
  ["messages[0]", { messages: ["hi"] }],
  ["messages[0].role", { messages: [{ role: "wizard", content: "x" }] }],
  ["messages[0].content", { messages: [{ role: "user", content: 7 }] }],
  ["messages[0].content", { messages: [{ role: "user" }] }],
  ["messages[0].tool_call_id", { messages: [{ role: "tool", content: "x" }] }],
  [
    "messages[0].tool_calls[0].function.arguments",
    { messages: [{ role: "assistant", tool_calls: [{ id: "i", function: { name: "f", arguments: {} } }] }] },
  ],
  ["messages[0].content[0].type", { messages: [{ role: "system", content: [{ type: "image_url" }] }] }],
  ["tools[0].type", { tools: [{ type: "retrieval" }] }],
  ["tool_choice", { tools: [{ type: "function", function: { name: "f" } }], tool_choice: "any" }],
  ["tool_choice.type", { tools: [f], tool_choice: { function: { name: "f" } } }],
  ["tool_choice", { tools: [f], tool_choice: named }],
  ["tool_choice", { tools: [], tool_choice: "required" }],
  ["response_format.type", { response_format: { type: "grammar" } }],
  ["response_format.json_schema", { response_format: { type: "json_schema" } }],
  ["reasoning_effort", { reasoning_effort: 1 }],
  ["chat_template_kwargs.enable_thinking", { chat_template_kwargs: { enable_thinking: "yes" } }],
];
test.each(wrong)("a wrong %s is refused with its name", (param, body) => {
  expect(() => said(body, { reasoning: { mode: "optional", efforts: [], templateKwargsAccepted: true } })).toThrow(
    expect.objectContaining({ kind: "invalid_request", param }) as Error,
  );
});

test("llama-server gets a seed of at most 32 bits, and is always asked for one alternative", () => {
  for (const [seed, held] of [
    [7, 7],
    [-1, 1],
    [2 ** 32 - 1, 0],
    [-(2 ** 63), 2 ** 31],
    [-(2 ** 40), 256],
  ])
    expect(said({ seed }, {}, "llama-server")).toMatchObject({ seed: held });
  expect(said({ logprobs: true }, {}, "llama-server")).toMatchObject({ logprobs: true, top_logprobs: 1 });
  expect(said({ logprobs: true })).toMatchObject({ logprobs: true, top_logprobs: 0 });
});
