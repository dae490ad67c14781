import { getLlama, LlamaGrammar, LlamaLogLevel, type Llama } from "node-llama-cpp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerGrammar } from "./answer-grammar.ts";

let llama: Llama;
beforeAll(async () => {
  llama = await getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.error });
});
afterAll(() => llama.dispose());

/** Returns the texts that llama.cpp itself accepts with the grammar. */
function taken(grammar: string, texts: readonly string[]): string[] {
  const compiled = new LlamaGrammar(llama, { grammar }) as unknown as { _testText(text: string): boolean };
  return texts.filter((text) => compiled._testText(text));
}

const json = (schema: unknown) => answerGrammar({ schema, tools: [], calls: "many", afterThought: false });

/** Returns the texts that the grammar of the schema judges wrongly. */
function misjudged(schema: unknown, good: readonly string[], bad: readonly string[]): string[] {
  const accepted = taken(json(schema), [...good, ...bad]);
  return [...good.filter((text) => !accepted.includes(text)), ...accepted.filter((text) => bad.includes(text))];
}

const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" }, city: { type: "string" } },
  required: ["name", "city"],
};

describe("a schema", () => {
  test("requires its required fields and allows the optional ones, in their order", () => {
    expect(
      misjudged(
        person,
        ['{"name": "A", "age": 4, "city": "B"}', '{"name":"A","city":"B"}', '{\n  "name": "A",\n  "city": "B"\n}'],
        [
          '{"name": "A"}',
          '{"city": "B", "name": "A"}',
          '{"name": "A", "city": "B", "x": 1}',
          '{"name": 1, "city": "B"}',
        ],
      ),
    ).toEqual([]);
  });

  test("with only optional fields allows any selection of them", () => {
    const schema = { type: "object", properties: { a: { type: "null" }, b: { type: "null" }, c: { type: "null" } } };
    expect(
      misjudged(
        schema,
        ["{}", '{"a":null}', '{"c":null}', '{"a":null,"c":null}', '{"a":null,"b":null,"c":null}'],
        ['{"c":null,"a":null}', '{"a":null,}', '{,"b":null}', '{"a":null "b":null}'],
      ),
    ).toEqual([]);
  });

  test("of numbers supports integers, without an exponent", () => {
    expect(misjudged({ type: "integer" }, ["0", "-7", "123"], ["01", "1.5", "8e9", "+1", ""])).toEqual([]);
    expect(misjudged({ type: "number" }, ["0", "-1.5", "2e3", "1.5E-2"], ["1.", ".5", "NaN"])).toEqual([]);
  });

  test("limits strings and arrays", () => {
    expect(
      misjudged({ type: "string", minLength: 1, maxLength: 2 }, ['"a"', '"ä🙂"', '"\\n\\u00e4"'], ['""', '"abc"']),
    ).toEqual([]);
    const array = { type: "array", items: { type: "boolean" }, minItems: 1, maxItems: 2 };
    expect(misjudged(array, ["[true]", "[true, false]"], ["[]", "[true,true,true]", "[1]"])).toEqual([]);
    expect(
      misjudged({ type: "array", items: { type: "null" }, maxItems: 1 }, ["[]", "[null]"], ["[null,null]"]),
    ).toEqual([]);
    expect(misjudged({ type: "array", items: {}, maxItems: 0 }, ["[]"], ["[1]"])).toEqual([]);
  });

  test("supports choices of values, of types and of schemas", () => {
    expect(
      misjudged({ enum: ["red", 'a"b\\c', 3, null, "Öl"] }, ['"red"', '"a\\"b\\\\c"', "3", "null", '"Öl"'], ['"blue"']),
    ).toEqual([]);
    expect(misjudged({ const: { a: 1 } }, ['{"a":1}'], ['{"a":2}'])).toEqual([]);
    expect(misjudged({ type: ["string", "null"] }, ['"x"', "null"], ["1"])).toEqual([]);
    expect(misjudged({ anyOf: [{ type: "boolean" }, { const: 1 }] }, ["true", "1"], ["2"])).toEqual([]);
    const merged = { allOf: [{ $ref: "#/$defs/a" }, { properties: { b: { type: "null" } }, required: ["b"] }] };
    const a = { type: "object", properties: { a: { type: "null" } }, required: ["a"] };
    expect(misjudged({ ...merged, $defs: { a } }, ['{"a":null,"b":null}'], ['{"a":null}', '{"b":null}'])).toEqual([]);
  });

  test("may contain itself", () => {
    const node = { type: "object", properties: { next: { $ref: "#/$defs/node" } } };
    expect(
      misjudged(
        { $ref: "#/$defs/node", $defs: { node } },
        ["{}", '{"next":{"next":{}}}'],
        ['{"next":1}', '{"next":{"next":[]}}'],
      ),
    ).toEqual([]);
  });

  test("with rules for other fields allows such fields", () => {
    expect(
      misjudged(
        { type: "object", additionalProperties: { type: "integer" } },
        ["{}", '{"x": 1, "y": 2}'],
        ['{"x": "1"}'],
      ),
    ).toEqual([]);
    const open = { type: "object", properties: { a: { type: "null" } }, additionalProperties: true };
    expect(misjudged(open, ["{}", '{"a":null,"x":[{}]}', '{"x":1}'], ['{"a":1,"b":2,}'])).toEqual([]);
    expect(misjudged({ type: "object", properties: {} }, ["{}"], ['{"a":1}'])).toEqual([]);
  });

  test("without rules allows any JSON, and `object` any object", () => {
    const texts = ["1", "[]", '{"a": [1, {"b": null}], "c": "\\u00e4"}'];
    expect(misjudged({}, texts, ["", "{a:1}", "'x'", "nul"])).toEqual([]);
    expect(misjudged({ type: "object" }, texts.slice(2), texts.slice(0, 2))).toEqual([]);
  });
});

test.each([
  [{ type: "nonsense" }, "a type that does not exist"],
  [{ $ref: "#/$defs/none" }, "leads nowhere"],
  [{ $ref: "https://example.org/schema" }, "leads out of it"],
  [{ $ref: "#/$defs/a", $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }, {}] } } }, "leads to itself"],
  [{ enum: [] }, "allows nothing"],
  [{ type: "object", properties: { a: false } }, "must be an object"],
  [{ type: "string", minLength: 3, maxLength: 2 }, "below its minimum"],
])("%j is refused", (schema, reason) => {
  expect(() => json(schema)).toThrow(reason);
});

test("a oneOf of one bare type, or of one comment, replaces the rest of its schema", () => {
  const properties = { a: { type: "integer" } };
  expect(misjudged({ properties, required: ["a"], oneOf: [{ type: "object" }] }, ['{"b":"c"}', "{}"], ["1"])).toEqual(
    [],
  );
  expect(misjudged({ enum: [1], type: "string", oneOf: [{ type: "string" }] }, ['"any"'], ["1"])).toEqual([]);
  expect(misjudged({ enum: [1], oneOf: [{ $comment: "any value" }] }, ['"any"', "{}"], ["x"])).toEqual([]);
  expect(misjudged({ properties, oneOf: [{ type: "object", properties }] }, ['{"a":1}'], ['{"a":"c"}'])).toEqual([]);
});

test("a schema that is too deep or too large is refused before it costs much", () => {
  let deep: object = {};
  for (let level = 0; level < 100; level++) deep = { type: "array", items: deep };
  expect(() => json(deep)).toThrow("nested too deeply");
  const properties = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`p${index}`, { type: "null" }]));
  expect(() => json({ type: "object", properties })).toThrow("too large");
});

const same = (count: number, schema: object) => Array.from({ length: count }, () => schema);
const named = (count: number, schema: object) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, schema]));
const wide = { allOf: same(300, { $ref: "#/$defs/a" }), $defs: { a: { properties: named(1_000, {}) } } };
const otherCharacters = Array.from({ length: 300 }, (_, index) => String.fromCodePoint(0x4e00 + index));

test.each([
  ["merges itself 3,000 times", { allOf: same(3_000, { $ref: "#" }) }],
  ["merges many properties many times", wide],
  ["merges many keywords many times", { ...named(30_000, {}), allOf: same(1_000, {}) }],
  ["has very many values", { enum: Array.from({ length: 50_000 }, (_, index) => `value ${index}`) }],
  ["has values that all begin differently", { enum: otherCharacters }],
  ["has very long values", { enum: otherCharacters.slice(0, 20).map((one) => one.repeat(60_000)) }],
  ["has one very long value", { const: "a".repeat(2_000_000) }],
  ["is one of very many", { anyOf: same(1_000, { type: "null" }) }],
  ["has very many optional properties", { type: "object", properties: named(1_000, { type: "null" }) }],
])("a schema that %s is refused [D10]", (_, schema) => {
  expect(() => json(schema)).toThrow("too large");
});

test("each of a thousand words is allowed, and no other word with the same beginning", () => {
  const words = Array.from({ length: 1_000 }, (_, index) => `word ${index}`);
  const quoted = ['"word 7"', '"word 77"', '"word 999"'];
  expect(
    misjudged({ enum: [...words, 'a"b', 7] }, [...quoted, '"a\\"b"', "7"], ['"word"', '"word 1000"', '""']),
  ).toEqual([]);
});

describe("tools", () => {
  const weather = { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } };
  const clock = { name: "get_time", parameters: {} };
  const call = (name: string, args: string) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

  test("that are required are called, with arguments that fit", () => {
    const good = [call("get_weather", '{"city": "Köln"}'), call("get_time", '{"any": [1]}')];
    const bad = ["Hello", call("other", "{}"), call("get_weather", '{"town": "x"}'), call("get_time", "1")];
    const grammar = answerGrammar({ tools: [weather, clock], calls: "many", afterThought: false });
    expect(taken(grammar, [...good, good.join("\n"), ...bad])).toEqual([...good, good.join("\n")]);
  });

  test("after reasoning may begin with a new line, and otherwise may not", () => {
    const [line, shape] = ["\n\n{}", { schema: { type: "object" }, tools: [], calls: "one" }] as const;
    expect(taken(answerGrammar({ ...shape, afterThought: true }), [line, "{}"])).toEqual([line, "{}"]);
    expect(taken(answerGrammar({ ...shape, afterThought: false }), [line, "{}"])).toEqual(["{}"]);
  });

  test("with a limit of one call allow no second call", () => {
    const one = call("get_time", "{}");
    expect(
      taken(answerGrammar({ tools: [clock], calls: "one", afterThought: false }), [one, `${one}\n${one}`]),
    ).toEqual([one]);
  });

  test("with a schema allow either a call or an answer by the schema", () => {
    const grammar = answerGrammar({ schema: person, tools: [clock], calls: "one", afterThought: false });
    const both = ['{"name": "A", "city": "B"}', call("get_time", "{}")];
    expect(taken(grammar, [...both, "Hello"])).toEqual(both);
  });
});
