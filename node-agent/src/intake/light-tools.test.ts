/** Optional tools are accepted whatever their schemas cost, if a light form can spare the engine the grammar. */
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import type { ApiError } from "@weiche/shared/errors.ts";
import { expect, test } from "vitest";
import { costlySchemas } from "../../test/exchange/costly-schemas.ts";
import { usualTools } from "../../test/exchange/usual-schemas.ts";
import { plain } from "../../test/intake/said-request.ts";
import { dialects } from "../engines/dialects/all.ts";
import type { DialectName } from "../engines/engine.ts";
import type { ChatRequest, Tool } from "../engines/dialects/dialect.ts";
import { schemaBounds } from "../engines/dialects/schema-bounds.ts";
import { fittingTools } from "./light-tools.ts";
import { readRequest, say } from "./read-request.ts";
import { Budget } from "./schema-budget.ts";

const all = Object.keys(dialects) as DialectName[];
const light = ["llama-server", "openai"] as const;

/** Returns the schemas of the tools as an engine gets them. */
function told(
  schemas: readonly unknown[],
  dialect: DialectName,
  more: object = {},
  served: readonly DialectName[] = all,
): Record<string, unknown>[] {
  const tools = schemas.map((parameters, index) => ({ type: "function", function: { name: `f${index}`, parameters } }));
  const body = Buffer.from(JSON.stringify({ messages: [{ role: "user", content: "hi" }], tools, ...more }));
  const request = readRequest({ path: nodePaths.chat, rules: plain, dialects: served }, body) as ChatRequest;
  const written = JSON.parse(say(request, { dialect: dialects[dialect], dialectName: dialect }).toString()) as {
    tools: { function: { parameters: Record<string, unknown> } }[];
  };
  return written.tools.map((tool) => tool.function.parameters);
}

const named = (count: number, schema: object = { type: "string" }) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, schema]));
const wide = (count: number) => ({ type: "object", properties: named(count), description: "d" });
const wideOf = (count: number, of: object) => ({ type: "object", properties: named(count, of) });
const references = Object.fromEntries(
  Array.from({ length: 80 }, (_, index) => [`d${index}`, { $ref: `#/$defs/d${index}` }]),
);
const list = { type: "array", items: { type: "object", properties: named(30) } };
const words = { enum: Array.from({ length: 60 }, (_, index) => `w${index}`), type: "string" };

test.each([7, 22, 48, 64])("a tool with %d optional properties is sent whole, beside one bare type [S8.4]", (count) => {
  const schema = wide(count);
  for (const dialect of light) expect(told([schema], dialect)).toEqual([{ ...schema, oneOf: [{ type: "object" }] }]);
  expect(told([schema], "vllm")).toEqual([schema]);
});

const whole: [name: string, schema: object][] = [
  ["6 optional properties", wide(6)],
  ["many required properties", { ...wide(30), required: Object.keys(named(24)) }],
  ["7 and a oneOf of its own", { ...wide(7), oneOf: [{ type: "object", properties: named(7) }] }],
  ["7 after a reference", { $ref: "#/$defs/a", $defs: { a: wide(7) } }],
];

test.each(whole)(
  "a tool that costs little, or costs much and has no light form, is sent as written: %s",
  (_, schema) => {
    for (const dialect of all) expect(told([schema], dialect)).toEqual([schema]);
  },
);

test("a tool that must be called is sent as written", () => {
  for (const dialect of light) expect(told([wide(20)], dialect, { tool_choice: "required" })).toEqual([wide(20)]);
});

test("an object with 7 optional properties inside a tool gets a light form too", () => {
  const inner = { type: "object", properties: named(7) };
  const schema = { type: "object", properties: { inner, a: { type: "string" } } };
  const properties = { ...schema.properties, inner: { ...inner, oneOf: [{ type: "object" }] } };
  expect(told([schema], "llama-server")).toEqual([{ ...schema, properties, oneOf: [{ type: "object" }] }]);
});

test("a tool gets its light form although a property behind a reference has none", () => {
  const schema = { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: wide(7) }, required: ["a"] };
  expect(told([schema], "llama-server")).toEqual([{ ...schema, oneOf: [{ type: "object" }] }]);
});

test("the work for light forms is limited, and no tool that fits as written is refused", () => {
  const deep = JSON.parse(JSON.stringify(wideOf(20, wide(20)))) as object; // Every object appears once.
  const tools = Array.from({ length: 2 }, (_, index): Tool => {
    return { type: "function", function: { name: `f${index}`, parameters: deep } };
  });
  const once = new Budget(schemaBounds["llama-server"]);
  fittingTools(tools.slice(1), false, once);
  // Both fit as written. The work for one light form is about twice that.
  const bounds = { ...once.bounds, stepsMax: 2.5 * once.steps };
  const light = fittingTools(tools, true, new Budget(bounds)).map((tool, index) => tool !== tools[index]);
  expect(light).toEqual([true, false]);
});

test.each([
  [30, 12, 30],
  [40, 20, 20],
])(
  "%d tools of %d properties that share one definition of %d are accepted, because they fit as written",
  (count, own, shared) => {
    const definition = { ...wide(shared), required: Object.keys(named(shared)) };
    const schema = () => ({ ...wideOf(own, { $ref: "#/$defs/d" }), $defs: { d: definition } });
    const tools = Array.from({ length: count }, schema);
    for (const dialect of light) expect(told(tools, dialect)).toEqual(tools);
  },
);

test("a tool whose properties share a definition gets its light form if it costs no more", () => {
  const schema = {
    type: "object",
    properties: { ...named(20), a: { $ref: "#/$defs/d" }, b: { $ref: "#/$defs/d" } },
    $defs: { d: { type: "string", enum: ["x", "y"] } },
  };
  expect(told([schema], "llama-server")).toEqual([{ ...schema, oneOf: [{ type: "object" }] }]);
});

test("light forms of tools that fit do not reduce the work for tools that do not", () => {
  const once = new Budget(schemaBounds["llama-server"]);
  const tool = (parameters: object): Tool => ({ type: "function", function: { name: "f", parameters } });
  fittingTools([tool(wide(20))], false, once);
  const tools = [...Array.from({ length: 10 }, () => tool(wide(20))), tool(wide(48))];
  const bounds = { ...once.bounds, stepsMax: 11 * once.steps };
  expect(fittingTools(tools, true, new Budget(bounds)).at(-1)!.function.parameters).toHaveProperty("oneOf");
});

test("a document is written once to be measured, however many properties refer to it", () => {
  let written = 0;
  const counted = { toJSON: () => void written++ };
  const schema = {
    properties: named(60, { $ref: "#/$defs/a" }),
    $defs: { a: { type: "string" } },
    examples: [counted],
  };
  const tool: Tool = { type: "function", function: { name: "f", parameters: schema } };
  fittingTools([tool], true, new Budget(schemaBounds["llama-server"]));
  expect(written).toBeLessThanOrEqual(3);
});

test("only tools and properties that cost too much get a light form", () => {
  const schema = { type: "object", properties: { a: { type: "string" }, list, words }, required: ["a"] };
  const properties = {
    ...schema.properties,
    list: { ...list, oneOf: [{ type: "array" }] },
    words: { ...words, oneOf: [{ type: "string" }] },
  };
  expect(told([{ type: "object" }, schema], "llama-server")).toEqual([
    { type: "object" },
    { ...schema, properties, oneOf: [{ type: "object" }] },
  ]);
});

const a = { $ref: "#/$defs/a" };
const nothing = { type: "null" };

test.each<[what: string, property: object, type: unknown, rest?: object]>([
  ["a definition", a, "object", { allOf: [a] }],
  ["a definition, with more words", { ...a, default: {} }, "object", { default: {}, allOf: [a] }],
  ["a definition or null", { anyOf: [a, nothing], default: null }, ["object", "null"]],
  ["a list of a definition, or null", { anyOf: [{ items: a }, nothing] }, ["array", "null"]],
  ["an allOf with a definition", { allOf: [a] }, "object"],
  ["an object or null", { anyOf: [wide(48), nothing] }, ["object", "null"]],
  ["a definition that refers to another", { $ref: "#/$defs/b" }, "object", { allOf: [{ $ref: "#/$defs/b" }] }],
  ["many values without a type", { enum: [...words.enum, null, 1] }, ["string", "null", "number"]],
  ["one of an object and null", { oneOf: [a, nothing] }, ["object", "null"], { allOf: [{ oneOf: [a, nothing] }] }],
  ["one of a definition, after an allOf", { allOf: [{}], oneOf: [a] }, "object", { allOf: [{}, { oneOf: [a] }] }],
])(
  "a property gets a light form with its types if it is %s and costs too much",
  (_, property, type, rest = property) => {
    const schema = { type: "object", properties: { p: property }, $defs: { a: wide(48), b: a }, required: ["p"] };
    const properties = { p: { ...rest, oneOf: [{ type }] } };
    expect(told([schema], "llama-server")).toEqual([{ ...schema, properties, oneOf: [{ type: "object" }] }]);
    expect(told([schema], "vllm")).toEqual([schema]);
  },
);

test("a property that may have any type gets a light form that allows any value", () => {
  const anything = { anyOf: [{}, wide(48)] };
  const endless = { anyOf: [{ $ref: "#/$defs/e" }, wide(48)] };
  for (const property of [anything, { anyOf: [a, endless] }]) {
    const schema = { properties: { p: property }, $defs: { a: wide(48), e: endless } };
    const p = { ...property, oneOf: [{ $comment: "any value" }] };
    expect(told([schema], "llama-server")).toEqual([{ ...schema, properties: { p }, oneOf: [{ type: "object" }] }]);
  }
});

test("a tool with a costly oneOf gets its light form, unless a reference leads into the oneOf [S8.4]", () => {
  const oneOf = [wide(48), { type: "object", properties: { a: { type: "string" } } }];
  for (const dialect of light)
    expect(told([{ oneOf }], dialect)).toEqual([{ allOf: [{ oneOf }], oneOf: [{ type: "object" }] }]);
  const into = (pointer: string) => ({ $defs: { into: { $ref: pointer } } });
  expect(() => told([{ oneOf, ...into("#/oneOf/1") }], "openai")).toThrow("at most 48 ways");
  const property = { properties: { "a/b": { oneOf } }, ...into("#/properties/a~1b/oneOf/1") };
  expect(() => told([property], "openai")).toThrow("at most 48 ways");
});

test("a tool that is a definition gets its light form if it costs too much", () => {
  const $defs = { a: wide(48) };
  expect(told([{ ...a, $defs }], "llama-server")).toEqual([{ $defs, allOf: [a], oneOf: [{ type: "object" }] }]);
});

test("the work to find types is limited", () => {
  const fan = (to: string) => ({ anyOf: Array.from({ length: 40 }, () => ({ $ref: `#/$defs/${to}` })) });
  const $defs = { a: fan("b"), b: fan("c"), c: fan("d"), d: wide(48) };
  expect(() => told([{ properties: { a }, $defs }], "llama-server")).toThrow("unfold too far");
});

test("a required call keeps its schema, and a schema that costs too much is refused with its number and limit [S8.4]", () => {
  for (const tool_choice of ["required", { type: "function", function: { name: "f0" } }])
    expect(() => told([wide(48)], "llama-server", { tool_choice })).toThrow(
      expect.objectContaining({
        param: "tools[0].function.parameters",
        message: expect.stringMatching(/at most 48 ways to continue .*, but it has 98/) as string,
      }) as Error,
    );
});

test.each([
  [".properties", wide(65), "at most 64 properties"],
  ["", { ...wide(48), $defs: references, x: "x".repeat(300_000) }, "fewer different references"],
])("if a light form does not help, the error names the place and the tool: %s [S8.4]", (place, schema, message) => {
  expect(() => told([{}, schema], "llama-server")).toThrow(
    expect.objectContaining({
      param: expect.stringContaining(`tools[1].function.parameters${place}`) as string,
      message: expect.stringMatching(new RegExp(`${message}.* \\(tool f1\\)\\.$`)) as string,
    }) as Error,
  );
});

test("an error does not repeat the name of a tool that is not a plain word [D6]", () => {
  const tool: Tool = { type: "function", function: { name: "secret sentence", parameters: wide(65) } };
  expect(() => fittingTools([tool], true, new Budget(schemaBounds["llama-server"]))).toThrow(
    /^(?!.*secret).*there are 65\.$/,
  );
});

test("a light tool has at most 500 properties for engines whose grammar ignores them", () => {
  const schema = wide(500);
  expect(told([schema], "openai", {}, ["openai"])).toEqual([{ ...schema, oneOf: [{ type: "object" }] }]);
  expect(() => told([wide(501)], "openai", {}, ["openai"])).toThrow("at most 500 properties");
});

test("128 wide tools are accepted together, and the work for tools that do not fit is limited [D10]", () => {
  const mixed = Array.from({ length: 128 }, (_, index) => (index % 2 ? wide(48) : usualTools[0]!.schema));
  expect(told(mixed, "llama-server")).toHaveLength(128);
  const slow = { type: "object", allOf: [{ $ref: "#/$defs/big" }] };
  expect(() => told([{ type: "object", properties: named(60, slow), $defs: { big: wide(2_000) } }], "openai")).toThrow(
    "unfold too far",
  );
});

test.each(costlySchemas)("$name reaches an engine only beside a bare type [D10]", ({ schema }) => {
  expect(["invalid_request", '[{"type":"object"}]']).toContain(toldOrRefused(schema));
});

function toldOrRefused(schema: unknown): string {
  try {
    return JSON.stringify(told([schema], "llama-server")[0]!["oneOf"]);
  } catch (error) {
    return (error as ApiError).kind;
  }
}
