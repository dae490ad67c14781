import { expect, test } from "vitest";
import { withEnumPatterns } from "./enum-pattern.ts";

const words = [
  ...["Germany", "Ghana", "Greece", "Georgia", "Guinea", "Guinea-Bissau", "Gabon", "Gambia", "Grenada"],
  ...[
    "Côte d'Ivoire",
    "Congo (Brazzaville)",
    "Congo (Kinshasa)",
    "a+b",
    "c:\\d".slice(0, 2),
    "$1.50",
    "1^2",
    "🙂",
    "🙃",
  ],
];

function patternOf(schema: unknown): RegExp {
  const { anyOf } = withEnumPatterns(schema) as { anyOf: { pattern: string }[] };
  return new RegExp(anyOf[0]!.pattern, "u");
}

test("a pattern matches exactly the words of an enum", () => {
  const pattern = patternOf({ enum: words });
  for (const word of words) expect(word).toMatch(pattern);
  for (const word of ["", "G", "Guine", "Guinea-", "Ger", "Germanyy", "Congo", "a", "🙁"])
    expect(word).not.toMatch(pattern);
});

test("values that a pattern cannot express stay values", () => {
  const others = ['a "quoted" word', "back\\slash", "line\nend", "", 7, null, { a: 1 }];
  const { anyOf } = withEnumPatterns({ enum: [...words, ...others] }) as { anyOf: unknown[] };
  expect(anyOf[1]).toEqual({ enum: others });
});

test("short lists, values and other members stay unchanged", () => {
  const schema = {
    properties: { enum: { enum: ["a", "b"] }, list: { default: { enum: words }, const: { enum: words } } },
    required: ["enum"],
  };
  expect(withEnumPatterns(schema)).toEqual(schema);
  for (const name of ["a", "default", "enum"])
    expect(withEnumPatterns({ properties: { [name]: { items: { enum: words } } } })).toMatchObject({
      properties: { [name]: { items: { anyOf: [{ type: "string" }] } } },
    });
});

test("many words that are prefixes of each other do not make a deep pattern", () => {
  const chain = Array.from({ length: 300 }, (_, index) => "a".repeat(index + 1));
  const pattern = patternOf({ enum: chain });
  for (const word of chain) expect(word).toMatch(pattern);
  expect(pattern.source.match(/\(/g)!.length).toBeLessThanOrEqual(100);
});
