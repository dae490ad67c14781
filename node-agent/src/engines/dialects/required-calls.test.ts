import { expect, test } from "vitest";
import { RequiredCalls, requiredCallsFormat } from "./required-calls.ts";

const tool = (name: string, parameters?: object) => ({ type: "function" as const, function: { name, parameters } });

test("the format allows a call of any function, or a list of calls, each with its own arguments and working references", () => {
  const parameters = {
    type: "object",
    properties: { a: { $ref: "#/$defs/x" }, $ref: { type: "string" }, b: [{ $ref: "#" }] },
    $defs: { x: { type: "string" } },
  };
  const call = (name: string, at: number) => ({
    ...{ type: "object", required: ["name", "arguments"], additionalProperties: false },
    properties: { name: { const: name }, arguments: { $ref: `#/$defs/${at}` } },
  });
  const tools = [tool("f"), tool("g", parameters), tool("h", {})];
  expect(requiredCallsFormat({ tools, toolChoice: "required" })).toEqual({
    type: "json_schema",
    json_schema: {
      name: "tool_calls",
      schema: {
        anyOf: [
          ...[call("f", 0), call("g", 1), call("h", 2)],
          { type: "array", items: { anyOf: [call("f", 0), call("g", 1), call("h", 2)] }, minItems: 1 },
        ],
        $defs: {
          0: { type: "object", properties: {}, additionalProperties: false },
          1: {
            type: "object",
            properties: { a: { $ref: "#/$defs/1/$defs/x" }, $ref: { type: "string" }, b: [{ $ref: "#/$defs/1" }] },
            $defs: { x: { type: "string" } },
          },
          2: { type: "object" },
        },
      },
    },
  });
  expect(requiredCallsFormat({ tools, toolChoice: "required", oneCall: true })).toMatchObject({
    json_schema: { schema: { anyOf: [call("f", 0), call("g", 1), call("h", 2)] } },
  });
  expect(requiredCallsFormat({ tools, toolChoice: { name: "h" } })).toMatchObject({
    json_schema: { schema: { ...call("h", 0), $defs: { 0: { type: "object" } } } },
  });
});

const text =
  ' [ {"name": "get \\"it\\"", "arguments": {"a": "}]\\\\\\"{", "b": [{}, []]}},\n{"name":"g","arguments":{}}]\n';
const calls = [
  ['get "it"', '{"a": "}]\\\\\\"{", "b": [{}, []]}'],
  ["g", "{}"],
];

function read(pieces: readonly string[]): string[][] {
  const reader = new RequiredCalls();
  const seen: string[][] = [];
  for (const content of pieces) {
    const { toolCalls = [], ...rest } = reader.read({ index: 0, content });
    expect(rest).toEqual({ index: 0 });
    for (const { index, name, arguments: json = "" } of toolCalls) {
      if (name !== undefined) seen[index!] = [name, ""];
      seen[index!]![1] += json;
    }
  }
  return seen;
}

test("the text is read back into the same calls wherever it is split [S8.4]", () => {
  expect(read([text])).toEqual(calls);
  expect(read(text.split(""))).toEqual(calls);
  for (let at = 1; at < text.length; at++) expect(read([text.slice(0, at), text.slice(at)])).toEqual(calls);
});

test("a single call without a list is read too", () => {
  const single = ' { "name" : "f", "arguments": {"a": {}}\n}\n';
  expect(read([single])).toEqual([["f", '{"a": {}}']]);
  expect(read(single.split(""))).toEqual([["f", '{"a": {}}']]);
});

test("arguments are sent as they arrive, not at their end", () => {
  const reader = new RequiredCalls();
  const push = (content: string) => reader.read({ index: 0, content }).toolCalls;
  expect(push('[{"name":"f","arguments":{"a')).toEqual([
    { index: 0, name: "f", arguments: "" },
    { index: 0, arguments: '{"a' },
  ]);
  expect(push('": "b')).toEqual([{ index: 0, arguments: '": "b' }]);
});

test("each answer has its own calls, and a delta without text passes", () => {
  const reader = new RequiredCalls();
  expect(reader.read({ index: 1, reasoning: "r" })).toEqual({ index: 1, reasoning: "r" });
  for (const index of [1, 0])
    expect(reader.read({ index, content: '[{"name":"f","arguments":{}}]' }).toolCalls?.[0]).toMatchObject({ index: 0 });
  expect(reader.read({ index: 0, finish: "stop" })).toEqual({ index: 0, finish: "stop" });
});

test.each([
  "Hello",
  "{}x",
  '{"name":"\\x","arguments":{}}'.padEnd(4_200),
  '{"name":"f","arguments":{}}, {"name":"f","arguments":{}}',
  ' [{"name":"f","arguments":{}} x',
  '[{"name":"f","arguments":{}}] x',
  `[${" ".repeat(4_100)}`,
])("text that is not a list of calls is the engine's fault (%#)", (content) => {
  expect(() => read(content.split(""))).toThrow("tools.enforced: false");
});
