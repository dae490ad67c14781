import fc from "fast-check";
import { expect, test } from "vitest";
import type { ToolCallPiece } from "../engines/dialects/dialect.ts";
import { ToolCalls } from "./tool-calls.ts";

/** Returns the calls as a client assembles them by index: id, name, arguments. */
function whole(pieces: readonly ToolCallPiece[]): string[][] {
  const calls = new ToolCalls("own");
  const seen: string[][] = [];
  const told = [...pieces.flatMap((piece) => calls.take(piece) ?? []), ...calls.missingArguments()];
  for (const { index, opening, arguments: text } of told) {
    expect(opening === undefined || seen[index] === undefined).toBe(true);
    if (opening) seen[index] = [opening.id, opening.name, ""];
    seen[index]![2] += text;
  }
  return seen;
}

const paris = '{"city":"Paris"}';
const rome = '{"city":"Rome"}';

test.each<[variant: string, pieces: ToolCallPiece[], calls: string[][]]>([
  [
    "the next call has the index of the call before",
    [
      { index: 0, id: "a", name: "f", arguments: paris },
      { index: 0, id: "b", name: "g", arguments: rome },
    ],
    [
      ["a", "f", paris],
      ["b", "g", rome],
    ],
  ],
  [
    "the next call of the same function has the same index, in pieces",
    [
      { index: 0, id: "a", name: "f", arguments: "" },
      { index: 0, id: "", arguments: '{"city":' },
      { index: 0, id: "", arguments: '"Paris"}' },
      { index: 0, id: "b", name: "f", arguments: "" },
      { index: 0, id: "", arguments: rome },
    ],
    [
      ["a", "f", paris],
      ["b", "f", rome],
    ],
  ],
  [
    "two calls without arguments have one index",
    [
      { index: 0, id: "a", name: "f" },
      { index: 0, id: "b", name: "f" },
    ],
    [
      ["a", "f", "{}"],
      ["b", "f", "{}"],
    ],
  ],
  [
    "calls have neither indexes nor ids",
    [
      { name: "f", arguments: paris },
      { name: "f", arguments: rome },
      { name: "g", arguments: "{" },
      { arguments: "}" },
    ],
    [
      ["own-0", "f", paris],
      ["own-1", "f", rome],
      ["own-2", "g", "{}"],
    ],
  ],
  [
    "calls have ids and no indexes",
    [{ id: "a", name: "f" }, { arguments: paris }, { id: "b", name: "f" }, { id: "b", arguments: rome }],
    [
      ["a", "f", paris],
      ["b", "f", rome],
    ],
  ],
  [
    "indexes begin with 1 and have gaps",
    [
      { index: 1, id: "a", name: "f", arguments: paris },
      { index: 4, id: "b", name: "g", arguments: rome },
    ],
    [
      ["a", "f", paris],
      ["b", "g", rome],
    ],
  ],
  [
    "every piece repeats id and name",
    ['{"ci', 'ty":', '"Paris"}'].map((text) => ({ index: 0, id: "a", name: "f", arguments: text })),
    [["a", "f", paris]],
  ],
  [
    "every piece repeats the name, with another id each time",
    ['{"ci', 'ty":', '"Paris"}'].map((text, at) => ({ index: 0, id: `a${at}`, name: "f", arguments: text })),
    [["a0", "f", paris]],
  ],
  [
    "every piece has another id and no name",
    [
      { index: 0, id: "a", name: "f", arguments: "" },
      { index: 0, id: "b", arguments: '{"city":' },
      { index: 0, id: "c", arguments: '"Paris"}' },
    ],
    [["a", "f", paris]],
  ],
  [
    "the id comes after the name",
    [
      { index: 0, name: "f" },
      { index: 0, id: "a", name: "f", arguments: paris },
    ],
    [["own-0", "f", paris]],
  ],
  [
    "every call has its name as its id",
    [
      { index: 0, id: "f", name: "f", arguments: paris },
      { index: 1, id: "f", name: "f", arguments: rome },
    ],
    [
      ["f", "f", paris],
      ["own-1", "f", rome],
    ],
  ],
  [
    "arguments come at an index without a call",
    [
      { index: 0, id: "a", name: "f" },
      { index: 1, arguments: '{"city":' },
      { index: 2, arguments: '"Paris"}' },
    ],
    [["a", "f", paris]],
  ],
  [
    "pieces of several calls alternate",
    [
      { index: 0, id: "a", name: "f", arguments: '{"city":' },
      { index: 1, id: "b", name: "f", arguments: '{"city":' },
      { index: 0, arguments: '"Paris"}' },
      { index: 1, arguments: '"Rome"}' },
    ],
    [
      ["a", "f", paris],
      ["b", "f", rome],
    ],
  ],
  [
    "arguments are blank or follow blank text",
    [
      { index: 0, id: "a", name: "f", arguments: " " },
      { index: 0, arguments: "\n" },
      { index: 1, id: "b", name: "g", arguments: "\n" },
      { index: 1, arguments: paris },
    ],
    [
      ["a", "f", "{}"],
      ["b", "g", paris],
    ],
  ],
  [
    "arguments are the word null, whole or in pieces",
    [
      { index: 0, id: "a", name: "f", arguments: "null" },
      { index: 1, id: "b", name: "f", arguments: "" },
      { index: 1, arguments: " nu" },
      { index: 1, arguments: "ll" },
    ],
    [
      ["a", "f", "{}"],
      ["b", "f", "{}"],
    ],
  ],
  [
    "arguments only begin like the word null",
    [
      { index: 0, id: "a", name: "f", arguments: "nu" },
      { index: 0, arguments: "mber" },
      { index: 1, id: "b", name: "f", arguments: "nul" },
    ],
    [
      ["a", "f", "number"],
      ["b", "f", "nul"],
    ],
  ],
  [
    "arguments are repeated after their end",
    [
      { index: 0, id: "a", name: "f", arguments: paris },
      { index: 0, arguments: paris },
      { index: 1, id: "b", name: "f", arguments: rome },
      { index: 1, id: "b", name: "f", arguments: rome },
    ],
    [
      ["a", "f", paris],
      ["b", "f", rome],
    ],
  ],
  [
    "a brace or a tag follows the arguments",
    [
      { index: 0, id: "a", name: "f", arguments: `${paris}}` },
      { index: 1, id: "b", name: "f", arguments: rome },
      { index: 1, arguments: "\n</tool_call>" },
    ],
    [
      ["a", "f", paris],
      ["b", "f", rome],
    ],
  ],
  [
    "pieces of several calls without indexes alternate by id",
    [
      { id: "a", name: "f", arguments: '{"city":' },
      { id: "b", name: "g", arguments: '{"city":' },
      { id: "a", arguments: '"Paris"}' },
      { id: "b", arguments: '"Rome"}' },
    ],
    [
      ["a", "f", paris],
      ["b", "g", rome],
    ],
  ],
  [
    "an empty object precedes the arguments",
    [
      { index: 0, id: "a", name: "f", arguments: "{}" },
      { index: 0, arguments: '{"city":' },
      { index: 0, arguments: '"Paris"}' },
      { index: 1, id: "b", name: "f", arguments: `{}${rome}` },
      { index: 2, id: "c", name: "f", arguments: "{" },
      { index: 2, arguments: "}" },
      { index: 2, arguments: "\n}" },
    ],
    [
      ["a", "f", paris],
      ["b", "f", rome],
      ["c", "f", "{}"],
    ],
  ],
  [
    "arguments are JSON text within a JSON string",
    [
      { index: 0, id: "a", name: "f", arguments: JSON.stringify(paris) },
      { index: 1, id: "b", name: "f", arguments: '"{\\"ci' },
      { index: 1, arguments: 'ty\\":\\"Rome\\"' },
      { index: 1, arguments: '}"' },
      { index: 2, id: "c", name: "f", arguments: '""' },
      { index: 3, id: "d", name: "f", arguments: '"{no object}"' },
    ],
    [
      ["a", "f", paris],
      ["b", "f", rome],
      ["c", "f", "{}"],
      ["d", "f", '"{no object}"'],
    ],
  ],
  [
    "strings have bare line ends, tabs and backslashes",
    [
      { index: 0, id: "a", name: "f", arguments: '{"text":\n"1\n' },
      { index: 0, arguments: "\t2\\" },
      { index: 0, arguments: "d \\n \\u00e" },
      { index: 0, arguments: "9 C:\\users it\\'s\"}" },
    ],
    [["a", "f", '{"text":\n"1\\n\\t2\\\\d \\n \\u00e9 C:\\\\users it\'s"}']],
  ],
  [
    "every piece repeats the name, also pieces after the end",
    [
      ...['{"city":', '"Paris"}', "", " \n"].map((text, at) => ({
        index: 0,
        id: `a${at}`,
        name: "f",
        arguments: text,
      })),
      ...['{"city":"Rome"', "}", ""].map((text) => ({ index: 1, name: "f", arguments: text })),
    ],
    [
      ["a0", "f", paris],
      ["own-1", "f", rome],
    ],
  ],
  [
    "marks of the template follow the name",
    [
      { index: 0, id: "a", name: "f<|channel|>commentary", arguments: "" },
      { index: 0, id: "a", name: "f<|channel|>commentary", arguments: paris },
      { index: 1, id: "b", name: "<|f|>", arguments: rome },
    ],
    [
      ["a", "f", paris],
      ["b", "<|f|>", rome],
    ],
  ],
  [
    "the last brace of the arguments is missing",
    [
      { index: 0, id: "a", name: "f", arguments: '{"city":"Paris"' },
      { index: 1, id: "b", name: "f", arguments: '{"a":[{"b":"}"}, [1' },
      { index: 2, id: "c", name: "f", arguments: "{" },
      { index: 3, id: "d", name: "f", arguments: '{"city":' },
      { index: 4, id: "e", name: "f", arguments: '{"city"' },
      { index: 5, id: "f", name: "f", arguments: '{"city":"Par' },
    ],
    [
      ["a", "f", paris],
      ["b", "f", '{"a":[{"b":"}"}, [1]]}'],
      ["c", "f", "{}"],
      ["d", "f", '{"city":'],
      ["e", "f", '{"city"'],
      ["f", "f", '{"city":"Par'],
    ],
  ],
  [
    "the first brace of the arguments is missing",
    [
      { index: 0, id: "a", name: "f", arguments: '"city":"Paris"}' },
      { index: 1, id: "b", name: "f", arguments: '"ci' },
      { index: 1, arguments: 'ty"' },
      { index: 1, arguments: " " },
      { index: 1, arguments: ':"Ro' },
      { index: 1, arguments: 'me"}' },
      { index: 2, id: "c", name: "f", arguments: '"no object"' },
    ],
    [
      ["a", "f", paris],
      ["b", "f", rome],
      ["c", "f", '"no object"'],
    ],
  ],
  [
    "a piece without name and arguments comes first",
    [
      { index: 0, id: "a" },
      { index: 0, name: "f", arguments: paris },
    ],
    [["own-0", "f", paris]],
  ],
])("calls are complete where %s [S5.6]", (_variant, pieces, calls) => {
  expect(whole(pieces)).toEqual(calls);
});

test.each<[what: string, json: string, cut: { atLimit: boolean; below: boolean; unknown: boolean }]>([
  ["whole", paris, { atLimit: false, below: false, unknown: false }],
  ["within a string", '{"city":"Par', { atLimit: true, below: false, unknown: true }],
  ["before a value", '{"city":', { atLimit: true, below: false, unknown: true }],
  ["before the last brace", '{"city":"Paris"', { atLimit: true, below: false, unknown: false }],
  ["empty, which an engine may have added", "{}", { atLimit: true, below: false, unknown: false }],
])("the last call is cut off at the token limit unless its arguments are whole: %s [S5.6]", (_what, json, cut) => {
  const calls = new ToolCalls("own");
  calls.take({ index: 0, id: "a", name: "f", arguments: "{}" });
  calls.take({ index: 1, id: "b", name: "f", arguments: json });
  const [atLimit, below, unknown] = [true, false, undefined].map((known) => calls.isCut(known));
  expect({ atLimit, below, unknown }).toEqual(cut);
});

test("refuses arguments before any call, and more than 1,024 calls", () => {
  expect(() => whole([{ index: 0, arguments: "{}" }])).toThrow("without a name");
  const many = Array.from({ length: 1_025 }, (_, index) => ({ index, name: "f" }));
  expect(() => whole(many)).toThrow("too many");
});

const call = fc.record({
  name: fc.constantFrom("f", "g"),
  json: fc
    .dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
    .map((value) => JSON.stringify(value)),
  cuts: fc.array(fc.nat(40), { maxLength: 4 }),
});

/** Splits a call into pieces. The ways differ in the fields of each piece. */
function inPieces({ name, json, cuts }: { name: string; json: string; cuts: number[] }, at: number, way: string) {
  const bounds = [0, ...cuts.map((cut) => Math.min(cut, json.length)).toSorted((a, b) => a - b), json.length];
  const texts = bounds.slice(1).map((end, part) => json.slice(bounds[part], end));
  return texts.map((text, part): ToolCallPiece => {
    const isFirst = part === 0;
    const index = way === "without indexes" ? undefined : way === "one index" ? 0 : at;
    return { index, id: isFirst ? `id${at}` : undefined, name: isFirst ? name : undefined, arguments: text };
  });
}

test.each(["with indexes", "one index", "without indexes"])(
  "any calls %s come out complete, however they are split",
  (way) => {
    fc.assert(
      fc.property(fc.array(call, { minLength: 1, maxLength: 4 }), (calls) => {
        const pieces = calls.flatMap((each, at) => inPieces(each, at, way));
        expect(whole(pieces)).toEqual(calls.map(({ name, json }, at) => [`id${at}`, name, json]));
      }),
    );
  },
);
