import fc from "fast-check";
import { expect, test } from "vitest";
import {
  depthMax,
  keptStringBytes,
  lightBytesMax,
  lightValuesMax,
  mendTexts,
  readJson,
  scanJson,
  scanLight,
  valuesMax,
} from "./json-guard.ts";

const read = (text: string) => readJson(Buffer.from(text));
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
const long = (text: string) => `{"url":"${text}${"x".repeat(100_000)}","end":true}`;

const items = (count: number, item = "1") => `[${Array(count).fill(item).join()}]`;

const refused: [name: string, body: string | Buffer, problem: RegExp][] = [
  ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22]), /UTF-8/],
  ["an overlong encoding", Buffer.from([0x22, 0xc0, 0x80, 0x22]), /UTF-8/],
  ["an encoded surrogate", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /UTF-8/],
  ["a colon before any string", "\\{{{{:", /not valid JSON/],
  ["an empty body", "", /not valid JSON/],
  ["a byte order mark", "\ufeff{}", /not valid JSON/],
  ["a trailing comma", '{"a":1,}', /not valid JSON/],
  ["two values", "{} {}", /not valid JSON/],
  ["a string without end", '{"a":"b', /not valid JSON/],
  ["a string that ends in a backslash", '"\\', /not valid JSON/],
  ["an unknown escape", '"\\x41"', /not valid JSON/],
  ["an escape with a wrong digit", '"\\u00g1"', /not valid JSON/],
  ["an escape that is cut", '"\\u00', /not valid JSON/],
  ["a raw line break in a string", '"a\nb"', /not valid JSON/],
  ["a raw line break in a long string", long("").replace("xx", "x\n"), /not valid JSON/],
  ["an unknown escape in a long string", long("").replace('x","end', '\\q","end'), /not valid JSON/],
  ["65 levels of arrays", nested(depthMax + 1), /deeper than 64/],
  ["65 levels of objects", '{"a":'.repeat(depthMax + 1) + "1" + "}".repeat(depthMax + 1), /deeper than 64/],
  ["100,000 levels", nested(100_000), /deeper than 64/],
  [
    "an array of 32,769 numbers",
    items(valuesMax + 1),
    /more than 32768 values \(members of objects and items of arrays\)/,
  ],
  ["32,769 members", `{${'"a":1,'.repeat(valuesMax)}"a":1}`, /more than 32768 values/],
  ["an array of 32,768 arrays", items(valuesMax, "[]"), /more than 32768 values/],
  ["the same member twice", '{"a":1,"a":1}', /same member twice/],
  ["the same member twice, once escaped", '{"a":1,"\\u0061":2}', /same member twice/],
  ["the same member twice in an inner object", '[{"m":[{"b":{},"c":1,"b":0}]}]', /same member twice/],
  ["__proto__", '{"__proto__":{"a":1}}', /__proto__/],
  ["__proto__, escaped, within", '[[{"a":{"__pr\\u006fto__":null}}]]', /__proto__/],
  ["NUL", '{"a":"x\\u0000"}', /NUL/],
  ["NUL in a member's name", '{"\\u0000":1}', /NUL/],
  ["a high surrogate alone", '"\\ud83d"', /surrogate/],
  ["a high surrogate before another character", '"\\ud83dx"', /surrogate/],
  ["a high surrogate before an escape", '"\\ud83d\\n"', /surrogate/],
  ["a low surrogate alone", '"\\ude00"', /surrogate/],
  ["two high surrogates", '"\\ud83d\\ud83d"', /surrogate/],
  ["half a pair after the kept part of a long string", long("").replace('x","end', '\\ud83d","end'), /surrogate/],
];
test.each(refused)("%s is refused [D6 S18.10]", (_name, body, problem) => {
  const result = readJson(Buffer.from(body));
  expect("problem" in result && result.problem).toMatch(problem);
});

/** Any JSON text, including strings with NUL and halves of surrogate pairs, which JSON.stringify escapes. */
const brokenJson = fc
  .jsonValue({
    maxDepth: 3,
    stringUnit: fc.constantFrom("a", "\0", "\ud83d", "\ude00", "\ud83d\ude00", "\\", '"', "u"),
  })
  .map((value) => JSON.stringify(value));

test("broken texts are accepted if the caller allows them, and broken member names never are [D6 S18.10]", () => {
  fc.assert(
    fc.property(brokenJson, (text) => {
      const value: unknown = JSON.parse(text);
      const result = readJson(Buffer.from(text), undefined, "any");
      const isRefused = namesOf(value).some((name) => name.includes("\0") || !name.isWellFormed());
      expect("problem" in result ? "refused" : result.value).toEqual(isRefused ? "refused" : value);
    }),
    { numRuns: 300 },
  );
  expect(readJson(Buffer.from('{"a\\u0000"\n\t :1}'), undefined, "any")).toHaveProperty("problem");
  expect(readJson(Buffer.from('["\\u0000\\x41"]'), undefined, "any")).toEqual({
    problem: "The body is not valid JSON.",
  });
});

test("mending replaces NUL and halves of surrogate pairs by U+FFFD and changes nothing else [D6]", () => {
  fc.assert(
    fc.property(brokenJson, (text) => {
      const bytes = Buffer.from(text);
      mendTexts(bytes);
      expect(JSON.parse(bytes.toString())).toEqual(sound(JSON.parse(text)));
      expect(bytes).toHaveLength(Buffer.byteLength(text));
    }),
    { numRuns: 300 },
  );
});

function sound(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed().replaceAll("\0", "\ufffd");
  if (Array.isArray(value)) return value.map(sound);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [sound(name), sound(member)]));
}

function namesOf(value: unknown): string[] {
  const names: string[] = [];
  JSON.parse(JSON.stringify(value), function (name: string, member: unknown) {
    if (!Array.isArray(this)) names.push(name);
    return member;
  });
  return names;
}

test.each([
  ["64 levels", nested(depthMax)],
  ["a surrogate pair", '"\\ud83d\\ude00 \u{1f600}"'],
  ["braces and colons in strings", '{"a{":"}]:{[\\"","b":[":",{}]}'],
  ["the same name in two objects", '[{"a":1},{"a":{"a":2}}]'],
  ["an empty name", '{"":{"":1}}'],
  ["names of members of Object.prototype", '{"constructor":1,"toString":2,"hasOwnProperty":3}'],
  ["every simple escape", '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"'],
  ["a plain number", "1e400"],
])("%s is read like JSON.parse reads it", (_name, text) => {
  expect(read(text)).toEqual({ value: JSON.parse(text) });
});

test("any JSON value without NUL and __proto__ is read unchanged", () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: "binary", maxDepth: 5 }), (text) => {
      const result = read(text);
      expect("problem" in result ? "refused" : result.value).toEqual(isSound(text) ? JSON.parse(text) : "refused");
    }),
    { numRuns: 500 },
  );
});

function isSound(text: string): boolean {
  let sound = true;
  JSON.parse(text, (name, value: unknown) => {
    if (name === "__proto__" || name.includes("\0") || (typeof value === "string" && value.includes("\0")))
      sound = false;
    return value;
  });
  return sound;
}

test("any bytes are either refused or read like JSON.parse reads them [D6]", () => {
  const soup = fc.array(fc.constantFrom(...'{}[]",:\\u0aé1 t"'.split(""), "true", '"a":', "\\ud83d"), {
    maxLength: 24,
  });
  fc.assert(
    fc.property(soup, (pieces) => {
      const text = pieces.join("");
      const result = read(text);
      const expected: unknown = "problem" in result ? result.problem : JSON.parse(text);
      expect(Object.values(result)).toEqual([expected]);
    }),
    { numRuns: 2_000 },
  );
});

test("a long string is cut between characters, and the text after it is kept", () => {
  for (const character of ["x", "é", "€", "\u{1f600}", "\\n", "\\u00e9"]) {
    for (let shift = 0; shift < 7; shift++) {
      const text = `{"url":"${"y".repeat(shift)}${character.repeat(100_000)}","end":true}`;
      const { value } = read(text) as { value: { url: string; end: boolean } };
      expect(value.end).toBe(true);
      expect(value.url.isWellFormed()).toBe(true);
      expect(JSON.parse(text).url.startsWith(value.url)).toBe(true);
      expect(value.url.length).toBeLessThan(keptStringBytes + 8);
      expect(value.url.length).toBeGreaterThan(keptStringBytes / 6 - 1);
    }
  }
});

test.each([
  ["a number", "1", 0],
  ["an empty object", "{}", 1],
  ["a member", '{"a":1}', 1],
  ["three items with commas and braces in texts", JSON.stringify(["a,b", "{a", 3]), 3],
  ["three items with three members each", items(3, '{"a":1,"b":2,"c":3}'), 12],
  ["60 levels", nested(60), 60],
])("the values of %s are counted", (_name, text, values) => {
  expect(scanJson(Buffer.from(text))).toMatchObject({ values });
});

/** Returns a body of about `bytes` bytes that repeats `item`. */
const full = (bytes: number, item: string) => `{"x":${items(Math.floor(bytes / (item.length + 1)), item)}}`;

test.each([
  ["a chat of 100 KB", `{"content":"${"word ".repeat(20_000)}"}`],
  ["2,048 texts for embeddings", `{"model":"m","input":${items(2_048, '"a short text"')}}`],
  ["40 tools of 20 parameters", items(40, `{"p":${items(20, '{"type":"string","description":"what it is"}')}}`)],
  ["4 KB of arrays nested 60 deep", full(4_000, nested(60))],
  ["a body that is refused after its first bytes", `[`.repeat(lightBytesMax)],
])("the main thread reads %s", (_name, text) => {
  expect(scanLight(Buffer.from(text))).toBeDefined();
});

test.each([
  ["200 KB of text", `"${"word ".repeat(40_000)}"`],
  ["50 KB of arrays nested 60 deep", full(50_000, nested(60))],
  ["many small objects", full(100_000, '{"a":1}')],
  ["many empty arrays", full(30_000, "[]")],
  ["many members", `{${Array.from({ length: lightValuesMax + 1 }, (_, at) => `"${at}":1`).join()}}`],
])("a worker thread reads %s", (_name, text) => {
  expect(scanLight(Buffer.from(text))).toBeUndefined();
});

test("a problem never quotes the body [D6]", () => {
  for (const body of ['{"secret": secret}', '{"secret":1,"secret":2}', '["secret\\u0000"]', '"secret', "secret"]) {
    expect(JSON.stringify(read(body))).not.toContain("secret");
  }
});

test("the problem does not claim that two long names with the same beginning are equal", () => {
  const name = "n".repeat(70_000);
  expect(readJson(Buffer.from(`{"${name}a":1,"${name}b":2}`))).toEqual({
    problem: "The body has an object with the same member twice, or two very long names that begin alike.",
  });
});
