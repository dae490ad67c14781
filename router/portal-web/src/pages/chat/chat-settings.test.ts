import { expect, test } from "vitest";
import { noSettings, readSettings, settingOf, type TypedSettings } from "./chat-settings.ts";

const read = (typed: Partial<TypedSettings>) => readSettings({ ...noSettings, ...typed });
const tool = { type: "function", function: { name: "f" } };

test("empty settings are not sent", () => {
  expect(JSON.stringify(read({ system: " \n", tools: " ", temperature: " " }))).toBe('{"parts":{},"faults":{}}');
});

test("settings are sent as they are typed, with a comma or a point", () => {
  const { parts, faults } = read({
    ...{ system: " Be brief. ", temperature: "0,7", maxTokens: " 40 ", stop: "a \n\n'" },
    ...{ tools: JSON.stringify([tool]), format: "json_schema", schema: '{"type":"object"}' },
  });
  expect(faults).toEqual({});
  expect(parts).toEqual({
    ...{ system: " Be brief. ", temperature: 0.7, max_tokens: 40, stop: ["a ", "'"], tools: [tool] },
    response_format: { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" }, strict: true } },
  });
  expect(read({ format: "json_object" }).parts.response_format).toEqual({ type: "json_object" });
});

test.each([
  [{ temperature: "2.1" }, "temperature", { kind: "number" }],
  [{ temperature: "1.000,5" }, "temperature", { kind: "number" }],
  [{ temperature: "warm" }, "temperature", { kind: "number" }],
  [{ maxTokens: "0" }, "maxTokens", { kind: "whole" }],
  [{ maxTokens: "1.5" }, "maxTokens", { kind: "whole" }],
  [{ stop: "x\n".repeat(65) }, "stop", { kind: "stops", max: 64 }],
  [{ tools: "{}" }, "tools", { kind: "tools" }],
  [
    { tools: '[{"type":"function","function":{"name":"f"}},{"type":"function"}]' },
    "tools",
    { kind: "tool", position: 2 },
  ],
  [{ tools: "[null]" }, "tools", { kind: "tool", position: 1 }],
  [{ tools: "[\n 1," }, "tools", { kind: "json" }],
  [{ tools: "[\n 1 2]" }, "tools", { kind: "json", line: "2", column: "4" }],
  [{ format: "json_schema" }, "schema", { kind: "object" }],
  [{ format: "json_schema", schema: "[]" }, "schema", { kind: "object" }],
] as const)("%j is a fault of %s and is not sent", (typed, name, fault) => {
  const { parts, faults } = read(typed);
  expect(faults).toEqual({ [name]: fault });
  expect(JSON.stringify({ ...parts, response_format: undefined })).toBe("{}");
});

test("a schema that is not asked for is neither checked nor sent", () => {
  expect(JSON.stringify(read({ schema: "{" }))).toBe('{"parts":{},"faults":{}}');
});

test("a refused parameter belongs to its setting", () => {
  expect(["max_tokens", "tools[0].function.name", "response_format.json_schema", "stop"].map(settingOf)).toEqual([
    ...["maxTokens", "tools", "schema", "stop"],
  ]);
  expect(["messages", "toolsx", null].map(settingOf)).toEqual([undefined, undefined, undefined]);
});
