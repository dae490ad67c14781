/** Tools, schemas and earlier calls of a chat, as engines get them. */
import { expect, test } from "vitest";
import { messages, said, scope } from "../../test/intake/said-request.ts";
import { readChatRequest } from "./chat-request.ts";

const f = { type: "function", function: { name: "f" } };
const g = { type: "function", function: { name: "g" } };
const named = { type: "function", function: { name: "g" } };

test.each([
  ["", "{}"],
  [" \n", "{}"],
  [" null\n", "{}"],
  ['{"a": " b "}', '{"a": " b "}'],
  ['\n{"a": {"b": [1.0]}} ', '{"a": {"b": [1.0]}}'],
  ['{"a\\u0000": "b\\ud83d \\ud83d\\ude00"}', '{"a\\ufffd": "b\\ufffd \\ud83d\\ude00"}'],
  ['{"a":"1\n\t\\d"}', '{"a":"1\\n\\t\\\\d"}'],
  ['"{\\"a\\":1}"', '{"a":1}'],
])("an earlier call with the arguments '%s' is sent with '%s'", (given, told) => {
  const calls = (text: string) => [{ id: "i", type: "function", function: { name: "f", arguments: text } }];
  const { messages: history } = said({ messages: [{ role: "assistant", tool_calls: calls(given) }] });
  expect(history).toEqual([{ role: "assistant", content: "", tool_calls: calls(told) }]);
});

test.each([
  ["{", "{}"],
  ['{"a', '{"a":null}'],
  ['{"a"', '{"a":null}'],
  ['{"a":', '{"a":null}'],
  ['{"a":"b', '{"a":"b"}'],
  ['{"a":"b\\', '{"a":"b"}'],
  ['{"a":"b\\u00', '{"a":"b"}'],
  ['{"a":1, ', '{"a":1}'],
  ['{"a":[1,', '{"a":[1]}'],
  ['{"a":[{"b":"c"', '{"a":[{"b":"c"}]}'],
  ['{"a":tr', '{"a":null}'],
  ['{"a":12', '{"a":12}'],
])("an earlier call whose arguments were cut off is sent complete: '%s' as '%s' [S3.4]", (given, told) => {
  const calls = (text: string) => [{ id: "i", type: "function", function: { name: "f", arguments: text } }];
  const { messages: history } = said({ messages: [{ role: "assistant", tool_calls: calls(given) }] });
  expect(history).toEqual([{ role: "assistant", content: "", tool_calls: calls(told) }]);
});

test.each([
  "{a",
  '{"a":}',
  "[1",
  "[1]",
  "nul",
  '"x"',
  "a=1",
  '{"a":1} {"b":2}',
  '{"a":'.repeat(65) + "1" + "}".repeat(65),
])(
  "an earlier call whose arguments are not a JSON object of at most 64 levels is refused with its place: %s [S3.4]",
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

test("at most one call is requested if the client limits it and there are tools [S8.2]", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  expect(said({ tools, parallel_tool_calls: false })).toEqual({ ...said({ tools }), parallel_tool_calls: false });
  for (const body of [{ tools, parallel_tool_calls: true }, { parallel_tool_calls: false }])
    expect(said(body)).not.toHaveProperty("parallel_tool_calls");
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
  ["$defs.*.$dynamicRef", { $defs: { "a name with spaces": { $dynamicRef: "//a.example" } } }],
  ["allOf[0].$recursiveRef", { allOf: [{ $recursiveRef: "urn:x" }] }],
])("a reference that leaves a schema is refused with its path: %s [D8]", (path, schema) => {
  for (const [body, at] of [
    [inTools(schema), "tools[0].function.parameters"],
    [inFormat(schema), "response_format.json_schema.schema"],
  ] as const)
    expect(() => said(body)).toThrow(
      expect.objectContaining({ kind: "invalid_request", param: `${at}.${path}` }) as Error,
    );
});

test("a reference inside data is kept, and a property with the name of such a keyword is a schema", () => {
  const data = { $ref: "https://a.example/s.json" };
  const schema = { default: data, const: [data], enum: [{ a: data }], examples: [data], properties: { default: {} } };
  for (const body of [inTools(schema), inFormat(schema)]) expect(said(body)).toMatchObject(body);
  for (const path of ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"])
    expect(() => said(inTools({ [path]: { default: data } }))).toThrow(
      expect.objectContaining({ param: `tools[0].function.parameters.${path}.default.$ref` }) as Error,
    );
});

test("references within a schema are kept, and properties with the name of a reference are kept", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $defs: { a: { type: "object", properties: { $ref: { type: "string" } } } },
    ...{ $ref: "#/$defs/a", allOf: [{ $ref: "#" }] },
  };
  for (const body of [inTools(schema), inFormat(schema)]) expect(said(body)).toMatchObject(body);
});

test("a named function is requested in each dialect's form", () => {
  const body = { tools: [f, g], tool_choice: named };
  for (const dialect of ["openai", "vllm"] as const)
    expect(said(body, {}, dialect)).toMatchObject({ tools: [f, g], tool_choice: named });
  const forced = said(body, {}, "llama-server");
  expect(forced).toMatchObject({ tools: [f, g], tool_choice: "none", response_format: { type: "json_schema" } });
  expect(JSON.stringify(forced["response_format"])).not.toContain('"f"');
});

test("llama-server may answer with at most one call if the client limits it, otherwise with a list", () => {
  const schemaOf = (more: object) =>
    JSON.stringify(said({ tools: [f, g], tool_choice: "required", ...more }, {}, "llama-server")["response_format"]);
  expect(schemaOf({ parallel_tool_calls: false })).not.toContain('"array"');
  expect(schemaOf({})).toContain('"array"');
});

test("no tools are sent if none may be called or there are none", () => {
  for (const body of [{ tools: [f], tool_choice: "none" }, { tools: [] }]) expect(said(body)).toEqual(said({}));
});

test("a model that cannot be forced gets auto, and its stop becomes tool_calls [S8.8]", () => {
  for (const tool_choice of ["required", named]) {
    const body = { tools: [f, g], tool_choice };
    expect(said(body, { toolsEnforced: false })).toMatchObject({ tools: [f, g], tool_choice: "auto" });
    expect(readChatRequest({ messages, ...body }, scope({ toolsEnforced: false })).stopsAsToolCalls).toBe(true);
    expect(readChatRequest({ messages, ...body }, scope()).stopsAsToolCalls).toBe(false);
  }
  expect(readChatRequest({ messages, tools: [f] }, scope({ toolsEnforced: false })).stopsAsToolCalls).toBe(false);
});
