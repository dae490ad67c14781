/** Tests that engines get a client's schemas and seed unchanged: the tokens of the client's JSON, in the same order. */
import fc from "fast-check";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { expect, test } from "vitest";
import { plain } from "../../test/intake/said-request.ts";
import { dialects } from "../engines/dialects/all.ts";
import type { DialectName } from "../engines/engine.ts";
import type { ChatRequest } from "../engines/dialects/dialect.ts";
import { readRequest, say } from "./read-request.ts";

const all = Object.keys(dialects) as DialectName[];

/** Returns the body for an engine as text. `fields`: JSON text of the members beside the messages. */
function told(fields: string, dialect: DialectName): string {
  const body = Buffer.from(`{"messages":[{"role":"user","content":"hi"}],${fields}}`);
  const request = readRequest({ path: nodePaths.chat, rules: plain, dialects: all }, body) as ChatRequest;
  return say(request, { dialect: dialects[dialect], dialectName: dialect }).toString();
}
const tool = (schema: string) => `"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]`;
const format = (schema: string) =>
  `"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":${schema}}}`;

/** Returns strings decoded, and numbers and punctuation unchanged, without white space. */
function tokens(text: string): string {
  const found = text.match(/"(?:[^"\\]|\\.)*"|[^\s"[\]{},:]+|[[\]{},:]/g)!;
  return found.map((token) => (token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token)).join(" ");
}

const names = ["a", "0", "1", "10", "007", "1e3", "\\u0031", "\\u00e9", "4294967295", "x\\\\u0000", '\\"0'];
const numbers = ["1", "1.0", "-0", "0.10", "1e2", "1E+2", "9007199254740993", "1234567890123456789", "0.1", "1e308"];
const strings = ['"0"', '"\\\\u00001"', '"\\u00e9"', '"a\\"\\\\"', '""'];
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(...numbers, ...strings, "true", "null"),
    fc.array(tie("json"), { maxLength: 3 }).map((items) => `[ ${items.join(" ,")} ]`),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom(...names), tie("json")), {
        maxLength: 5,
        selector: ([name]) => JSON.parse(`"${name}"`) as string,
      })
      .map((members) => `{${members.map(([name, member]) => `"${name}" :${member}`).join(", ")}}`),
  ),
}));

test("every schema reaches engines of every dialect token by token, in the client's order", () => {
  fc.assert(
    fc.property(json, (value) => {
      const schema = `{"type":"object","x-first":${value},"default":${value},"0":1.0}`;
      for (const dialect of all)
        for (const place of [tool, format]) expect(tokens(told(place(schema), dialect))).toContain(tokens(schema));
    }),
    { numRuns: 150 },
  );
});

test("the input of llama-server's grammar keeps its numbers and order too", () => {
  const words = JSON.stringify(Array.from({ length: 20 }, (_, index) => `w${index}`));
  const member = '{"maximum":1234567890123456789,"minimum":1.0,"const":1234567890123456789}';
  const schema = `{"type":"object","properties":{"b":${member},"1":${member},"e":{"enum":${words}}}}`;
  const written = told(format(schema), "llama-server");
  expect(written).toContain(`"properties":{"b":${member},"1":${member},"e":{"anyOf":[`);
  const forced = told(`${tool(schema)},"tool_choice":"required"`, "llama-server");
  expect(forced.slice(forced.indexOf("$defs"))).toContain(`"properties":{"b":${member},"1":${member},"e":`);
});

test.each(["9223372036854775807", "-9223372036854775808", "9007199254740993", "7", "-1"])(
  "the seed %s reaches engines digit by digit, and llama-server as 32 bits [S4.11]",
  (seed) => {
    for (const dialect of ["vllm", "openai"] as const)
      expect(told(`"seed":${seed}`, dialect)).toContain(`"seed":${seed},`);
    const held = ((BigInt(seed) < 0n ? -BigInt(seed) : BigInt(seed)) % (2n ** 32n - 1n)).toString();
    expect(told(`"seed":${seed}`, "llama-server")).toContain(`"seed":${held},`);
  },
);

test.each(["9223372036854775808", "-9223372036854775809", "9.223372036854775808e18"])(
  "the seed %s exceeds 64 bits and is refused [S4.11]",
  (seed) => {
    expect(() => told(`"seed":${seed}`, "vllm")).toThrow(
      expect.objectContaining({ kind: "invalid_request", param: "seed" }) as Error,
    );
  },
);

test("a number that exceeds the range of engines is refused with its place", () => {
  expect(() => told(tool('{"properties":{"1":{"maximum":-1e400}}}'), "vllm")).toThrow(
    expect.objectContaining({
      kind: "invalid_request",
      param: "tools[0].function.parameters.properties.1.maximum",
    }) as Error,
  );
});

/** An array of 80 strings of at most `length` characters, all required. */
function counted(length: string): string {
  const fields = Array.from({ length: 80 }, (_, index) => `p${index}`);
  const properties = fields.map((name) => `"${name}":{"type":"string","maxLength":${length}}`).join();
  return `{"type":"object","properties":{${properties}},"required":${JSON.stringify(fields)}}`;
}
test.each(["2000", "2000.0", "2e3", "0.2E4"])("a limit applies however it is written: %s", (length) => {
  expect(() => told(format(counted(length)), "vllm")).toThrow("must be a smaller schema");
  expect(told(format(counted("1.0")), "vllm")).toContain('"maxLength":1.0');
});

test("the check follows references to names that look like indices, in the client's order", () => {
  const wide = Array.from({ length: 60 }, (_, index) => `"p${index}":{}`).join();
  const referring = (to: string) => `{"properties":{"a":{"$ref":"#/$defs/1"}},"$defs":{"1":{"properties":{${to}}}}}`;
  expect(() => told(format(referring(wide)), "openai")).toThrow("ways to continue");
  expect(told(format(referring("")), "openai")).toContain(referring(""));
  const indices = Array.from({ length: 60 }, (_, index) => String(index));
  const required = indices.map((name) => `"${name}":{"type":"null"}`).join();
  const wholly = `{"properties":{${required}},"required":${JSON.stringify(indices)}}`;
  expect(told(format(wholly), "openai")).toContain(wholly);
  // The alternatives differ in their first required property: `a` in the text, `1` after JSON.parse.
  const kinds = (first: string, second: string) =>
    [1, 2]
      .map((kind) => `{"properties":{"${first}":{"const":${kind}},"${second}":{"$ref":"#"}},"required":["a","1"]}`)
      .join();
  expect(told(format(`{"anyOf":[${kinds("a", "1")}]}`), "openai")).toContain('"a":{"const":1},"1":{"$ref":"#"}');
  expect(() => told(format(`{"anyOf":[${kinds("1", "a").replaceAll("const", "x-const")}]}`), "openai")).toThrow(
    "must be told apart",
  );
});
