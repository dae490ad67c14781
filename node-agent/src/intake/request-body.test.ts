import { expect, test } from "vitest";
import { depthMax, valuesMax } from "@weiche/shared/http/json-guard.ts";
import { parseBody } from "./request-body.ts";

const nested = (depth: number, value = "1") => `${'{"a":'.repeat(depth)}${value}${"}".repeat(depth)}`;

test("a body is read like JSON.parse does, up to 64 levels", () => {
  for (const text of ["{}", nested(depthMax), '{"a":"[[{\\"\\\\","b":[[]]}'])
    expect(parseBody(Buffer.from(text))).toEqual(JSON.parse(text));
});

test.each([
  ["65 levels of objects", nested(depthMax + 1), /deeper than 64/],
  ["100,000 levels of arrays", `{"a":${"[".repeat(100_000)}`, /deeper than 64/],
  ["brackets behind an escaped quote", `{"a":"\\"","b":${"[".repeat(64)}`, /deeper than 64/],
  ["a list of 32,769 numbers", JSON.stringify({ a: Array(valuesMax).fill(1) }), /more than 32768 values/],
  ["no JSON", '{"secret', /not valid JSON/],
  ["a list", "[]", /must be a JSON object/],
  ["nothing", "", /not valid JSON/],
])("%s is refused, and not quoted", (_name, text, message) => {
  expect(() => parseBody(Buffer.from(text))).toThrow(message);
  expect(() => parseBody(Buffer.from(text))).not.toThrow("secret");
});
