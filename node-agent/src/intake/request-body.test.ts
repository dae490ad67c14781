import { expect, test } from "vitest";
import { depthMax, valuesMax } from "@weiche/shared/http/json-guard.ts";
import { parseBody } from "./request-body.ts";

const nested = (depth: number, value = "1") => `${'{"a":'.repeat(depth)}${value}${"}".repeat(depth)}`;

test("a body is read like JSON.parse does, up to 64 levels", () => {
  for (const text of ["{}", nested(depthMax), '{"a":"[[{\\"\\\\","b":[[]]}'])
    expect(parseBody(Buffer.from(text)).value).toEqual(JSON.parse(text));
});

test.each([
  ["65 levels of objects", nested(depthMax + 1), /deeper than 64/],
  ["100,000 levels of arrays", `{"a":${"[".repeat(100_000)}`, /deeper than 64/],
  ["brackets after an escaped quote", `{"a":"\\"","b":${"[".repeat(64)}`, /deeper than 64/],
  ["a list of 32,769 numbers", JSON.stringify({ a: Array(valuesMax).fill(1) }), /more than 32768 values/],
  ["no JSON", '{"secret', /not valid JSON/],
  ["a list", "[]", /must be a JSON object/],
  ["nothing", "", /not valid JSON/],
])("%s is refused, and not quoted", (_name, text, message) => {
  expect(() => parseBody(Buffer.from(text))).toThrow(message);
  expect(() => parseBody(Buffer.from(text))).not.toThrow("secret");
});

test("texts with NUL and unpaired surrogates are mended, and such names of members are refused [D6 S18.10]", () => {
  const broken = ["a\0", "\ud83d", "\ude00\ud83d", "\ud83d\ude00", "\\u0000"];
  const { value } = parseBody(Buffer.from(JSON.stringify({ broken })));
  expect(value).toEqual({ broken: ["a\ufffd", "\ufffd", "\ufffd\ufffd", "\ud83d\ude00", "\\u0000"] });
  for (const [name, message] of [
    ["\0", /NUL/],
    ["\ud83d", /surrogate/],
  ] as const)
    expect(() => parseBody(Buffer.from(JSON.stringify({ a: [{ [name]: 1 }] })))).toThrow(message);
});
