import { expect, test } from "vitest";
import { messages, said, scope } from "../../test/intake/said-request.ts";
import { dialects } from "../engines/dialects/all.ts";
import { readChatRequest } from "./chat-request.ts";
import { readCompletionRequest } from "./completion-request.ts";

const f = { type: "function", function: { name: "f" } };
const g = { type: "function", function: { name: "g" } };
const named = { type: "function", function: { name: "g" } };
const always = {
  model: "m",
  messages,
  ...{ temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, n: 1, stream: true },
  chat_template_kwargs: { enable_thinking: false, thinking: false },
};
const usageOptions = { include_usage: true, continuous_usage_stats: true };

test("what a client does not say is said for it, in each dialect", () => {
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

test("a completion is said in the same way, 16 tokens long where nobody says", () => {
  const request = readCompletionRequest({ prompt: "p", logprobs: 0, echo: true, suffix: "s", best_of: 9 }, scope());
  const { messages: _, chat_template_kwargs: _switch, ...rest } = always;
  const body = JSON.parse(JSON.stringify(dialects.openai.completionBody(request))) as object;
  expect(body).toEqual({ ...rest, prompt: "p", max_tokens: 16, logprobs: 0, stream_options: usageOptions });
  expect(dialects["llama-server"].completionBody(request)).toMatchObject({ logprobs: 1, top_k: 0 });
});

test("max_completion_tokens means nothing to a completion, whatever it is", () => {
  const request = (more: object) => readCompletionRequest({ prompt: "p", max_tokens: 5, ...more }, scope());
  for (const max_completion_tokens of [2, "x"]) expect(request({ max_completion_tokens })).toEqual(request({}));
});

test("all that a client may say reaches the engine", () => {
  const tools = [{ type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } }];
  const schema = { type: "json_schema", json_schema: { name: "s", schema: { type: "object" }, strict: true } };
  const body = {
    ...{ max_tokens: 5, temperature: 0, top_p: 0.5, stop: ["a", "b"], n: 3, seed: 7, presence_penalty: -2 },
    ...{ frequency_penalty: 2, logprobs: true, top_logprobs: 20, tools, tool_choice: "required" },
    response_format: schema,
  };
  expect(said(body)).toEqual({ ...always, ...body, stream_options: usageOptions });
});

test("nothing else does, at no depth", () => {
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

test.each([
  ["", "{}"],
  [" \n", "{}"],
  [" null\n", "{}"],
  ['{"a": " b "}', '{"a": " b "}'],
  ['\n{"a": {"b": [1.0]}} ', '{"a": {"b": [1.0]}}'],
  ['{"a\\u0000": "b\\ud83d \\ud83d\\ude00"}', '{"a\\ufffd": "b\\ufffd \\ud83d\\ude00"}'],
])("an earlier call with the arguments '%s' is told with '%s'", (given, told) => {
  const calls = (text: string) => [{ id: "i", type: "function", function: { name: "f", arguments: text } }];
  const { messages: history } = said({ messages: [{ role: "assistant", tool_calls: calls(given) }] });
  expect(history).toEqual([{ role: "assistant", content: "", tool_calls: calls(told) }]);
});

test.each(["{", '{"a":', "[1]", "nul", '"x"', "a=1", '{"a":1} {"b":2}', '{"a":'.repeat(65) + "1" + "}".repeat(65)])(
  "an earlier call whose arguments are no JSON object of at most 64 levels is refused by its place: %s",
  (given) => {
    const call = (text: string) => ({ id: "i", function: { name: "f", arguments: text } });
    const history = [...messages, { role: "assistant", tool_calls: [call("{}"), call(given)] }];
    expect(() => said({ messages: history })).toThrow(
      expect.objectContaining({
        kind: "invalid_request",
        param: "messages[1].tool_calls[1].function.arguments",
      }) as Error,
    );
  },
);

test("a developer message reaches the model as a system message", () => {
  const told = said({ messages: [{ role: "developer", content: [{ type: "text", text: "d" }] }, ...messages] });
  expect(told["messages"]).toEqual([{ role: "system", content: [{ type: "text", text: "d" }] }, ...messages]);
});

test("a schema keeps all of its members but __proto__", () => {
  const parameters = JSON.parse(
    '{"constructor":1,"properties":{"__proto__":{"x":1},"a":[{"__proto__":2,"b":3}]}}',
  ) as object;
  const tools = [{ type: "function", function: { name: "f", parameters } }];
  expect(JSON.stringify(said({ tools })["tools"])).toContain('{"constructor":1,"properties":{"a":[{"b":3}]}}');
});

test("what the service does not name changes nothing, whatever it is", () => {
  for (const user of [false, 1, "x"]) expect(said({ user })).toEqual(said({}));
});

test("one call at most is asked for where the client wants it and there are tools", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  expect(said({ tools, parallel_tool_calls: false })).toEqual({ ...said({ tools }), parallel_tool_calls: false });
  for (const body of [{ tools, parallel_tool_calls: true }, { parallel_tool_calls: false }])
    expect(said(body)).not.toHaveProperty("parallel_tool_calls");
});

test("null is the same as absent", () => {
  const names =
    "max_tokens max_completion_tokens temperature top_p stop n seed presence_penalty frequency_penalty logprobs top_logprobs stream stream_options tools tool_choice response_format reasoning_effort chat_template_kwargs";
  expect(said(Object.fromEntries(names.split(" ").map((name) => [name, null])))).toEqual(said({}));
});

test("max_completion_tokens wins, and is told in the word that all engines know", () => {
  expect(said({ max_completion_tokens: 2, max_tokens: 5 })).toMatchObject({ max_tokens: 2 });
});

test("empty stop strings are left out", () => {
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
test.each(wrong)("a wrong %s is refused by name", (param, body) => {
  expect(() => said(body, { reasoning: { mode: "optional", efforts: [], templateKwargsAccepted: true } })).toThrow(
    expect.objectContaining({ kind: "invalid_request", param }) as Error,
  );
});

const image = (url: string) => ({
  messages: [{ role: "user", content: [{ type: "image_url", image_url: { url, detail: "low" } }] }],
});
const images = { max: 2, formats: ["png"] };

test("images are data, only where the model sees, and no more than it takes", () => {
  const url = "data:image/png;base64,iVBORw0KGgo=";
  expect(said(image(url), { images })["messages"]).toEqual([
    { role: "user", content: [{ type: "image_url", image_url: { url } }] },
  ]);
  expect(() => said(image(url))).toThrow("takes no images");
  const three = { messages: Array.from({ length: 3 }, () => image(url).messages[0]) };
  expect(() => said(three, { images })).toThrow("at most 2 images");
  for (const link of [
    "https://a.example/x.png",
    "file:///etc/passwd",
    "iVBORw0KGgo=",
    "data:image/png,x",
    " data:image/png;base64,x",
    `http://x/${url}`,
  ])
    expect(() => said(image(link), { images })).toThrow("links are not fetched");
});

test.each([
  "data:image/png;charset=utf-8;base64,",
  "data:image/png;name=a%20b.png;base64,",
  'data:image/png;name="a; b, c.png";x=;base64,',
  "data:application/octet-stream;base64,",
  "DATA:image/PNG;BASE64,",
])("an image with the head %s reaches the engine with a plain one", (head) => {
  const url = "data:image/png;base64,iVBORw0KGgo=";
  expect(said(image(`${head}iVBORw0KGgo=`), { images })["messages"]).toMatchObject([
    { content: [{ image_url: { url } }] },
  ]);
});

const uri = (base64: string) => `data:image/png;base64,${base64}`;
const long = "iVBORw0KGgoA".repeat(100_000);

test.each(["iVBORw0KGgo=", "iVBORw0KGgoAAA==", "iVBORw0KGgoA", long])(
  "an image of sound Base64 is taken (%#)",
  (base64) => {
    expect(said(image(uri(base64)), { images })["messages"]).toMatchObject([
      { content: [{ image_url: { url: uri(base64) } }] },
    ]);
  },
);

test.each([
  ["an address behind it", "iVBORw0KGgo=http://a.example/x"],
  ["an address behind its padding's place", "iVBORw0KGgoAhttp://a.example/x."],
  ["a line break", "iVBORw0K\nGgoA"],
  ["padding within it", "iVBO=w0KGgoA"],
  ["too much padding", "iVBORw0KGgoA===="],
  ["its padding missing", "iVBORw0KGgo"],
  ["nothing", ""],
  ["letters of the URL alphabet", "iVBO_-0KGgoA"],
  ["one wrong character at the end of a megabyte", `${long}AAA!`],
])("an image of Base64 with %s is refused", (_name, base64) => {
  expect(() => said(image(uri(base64)), { images })).toThrow(
    expect.objectContaining({ kind: "invalid_request", param: "messages[0].content[0].image_url.url" }) as Error,
  );
});

const inTools = (parameters: object) => ({ tools: [{ type: "function", function: { name: "f", parameters } }] });
const inFormat = (schema: object) => ({
  response_format: { type: "json_schema", json_schema: { name: "s", schema, strict: true } },
});
test.each([
  ["$ref", { $ref: "https://a.example/s.json" }],
  ["$ref", { $ref: "s.json" }],
  ["$ref", { $ref: "" }],
  ["properties.a.items[1].$ref", { properties: { a: { items: [{}, { $ref: "file:///etc/passwd#/a" }] } } }],
  ["$defs.*.$dynamicRef", { $defs: { "a name with blanks": { $dynamicRef: "//a.example" } } }],
  ["allOf[0].$recursiveRef", { allOf: [{ $recursiveRef: "urn:x" }] }],
])("a reference that leaves a schema is refused by its path: %s", (path, schema) => {
  for (const [body, at] of [
    [inTools(schema), "tools[0].function.parameters"],
    [inFormat(schema), "response_format.json_schema.schema"],
  ] as const)
    expect(() => said(body)).toThrow(
      expect.objectContaining({ kind: "invalid_request", param: `${at}.${path}` }) as Error,
    );
});

test("a reference that only stands in data is kept, and a property with the name of such data is a schema", () => {
  const data = { $ref: "https://a.example/s.json" };
  const schema = { default: data, const: [data], enum: [{ a: data }], examples: [data], properties: { default: {} } };
  for (const body of [inTools(schema), inFormat(schema)]) expect(said(body)).toMatchObject(body);
  for (const path of ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"])
    expect(() => said(inTools({ [path]: { default: data } }))).toThrow(
      expect.objectContaining({ param: `tools[0].function.parameters.${path}.default.$ref` }) as Error,
    );
});

test("references within a schema, and what is only called so, are kept", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $defs: { a: { type: "object", properties: { $ref: { type: "string" } } } },
    ...{ $ref: "#/$defs/a", allOf: [{ $ref: "#" }] },
  };
  for (const body of [inTools(schema), inFormat(schema)]) expect(said(body)).toMatchObject(body);
});

test("a named function is asked for in each dialect's way", () => {
  const body = { tools: [f, g], tool_choice: named };
  for (const dialect of ["openai", "vllm"] as const)
    expect(said(body, {}, dialect)).toMatchObject({ tools: [f, g], tool_choice: named });
  const forced = said(body, {}, "llama-server");
  expect(forced).toMatchObject({ tools: [f, g], tool_choice: "none", response_format: { type: "json_schema" } });
  expect(JSON.stringify(forced["response_format"])).not.toContain('"f"');
});

test("no tools are sent where none may be called, or there are none", () => {
  for (const body of [{ tools: [f], tool_choice: "none" }, { tools: [] }]) expect(said(body)).toEqual(said({}));
});

test("a model that cannot be forced is asked as with auto, and stops as if it had called", () => {
  for (const tool_choice of ["required", named]) {
    const body = { tools: [f, g], tool_choice };
    expect(said(body, { toolsEnforced: false })).toMatchObject({ tools: [f, g], tool_choice: "auto" });
    expect(readChatRequest({ messages, ...body }, scope({ toolsEnforced: false })).stopsAsToolCalls).toBe(true);
    expect(readChatRequest({ messages, ...body }, scope()).stopsAsToolCalls).toBe(false);
  }
  expect(readChatRequest({ messages, tools: [f] }, scope({ toolsEnforced: false })).stopsAsToolCalls).toBe(false);
});

test("llama-server gets a seed that it can hold, and is always asked for an alternative", () => {
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
