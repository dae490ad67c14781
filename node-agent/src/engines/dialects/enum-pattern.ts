/** Rewrites long `enum` lists in a JSON Schema as patterns, for engines that try each `enum` value separately. */
import { literalTrie, type LiteralTrie } from "@weiche/shared/literal-trie.ts";
import { isRawJson } from "@weiche/shared/http/kept-json.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import { positionWithin, type SchemaPosition } from "./schema-positions.ts";

const valuesMin = 16;
/** Strings that JSON writes without escapes. */
const plain = /^[ !#-[\]-~\u00a1-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]+$/u;

/** Returns a copy in which a pattern replaces the plain strings of each long `enum`. It matches the same values. */
export function withEnumPatterns(schema: unknown, position: SchemaPosition = "schema"): unknown {
  if (position === "data") return schema;
  if (Array.isArray(schema)) return schema.map((item) => withEnumPatterns(item, position));
  if (!isObject(schema) || isRawJson(schema)) return schema;
  const values = schema["enum"];
  if (position === "schema" && Array.isArray(values) && values.length >= valuesMin) {
    const words = plainWords(values);
    if (words.length >= valuesMin) return { anyOf: [wordsSchema(words), ...otherValues(values, words)] };
  }
  return Object.fromEntries(
    Object.entries(schema).map(([name, member]) => [name, withEnumPatterns(member, positionWithin(position, name))]),
  );
}

export function plainWords(values: readonly unknown[]): string[] {
  return values.filter((value): value is string => typeof value === "string" && plain.test(value));
}

function wordsSchema(words: readonly string[]): Json {
  return { type: "string", pattern: `^${write(literalTrie(words))}$` };
}

function otherValues(values: readonly unknown[], words: readonly string[]): Json[] {
  const known: ReadonlySet<unknown> = new Set(words);
  const others = values.filter((value) => !known.has(value));
  return others.length === 0 ? [] : [{ enum: others }];
}

function write({ prefix, ends, next }: LiteralTrie): string {
  const before = prefix.replace(/[\^$.[\](){}|*+?]/g, String.raw`\$&`);
  return next.length === 0 ? before : `${before}(${next.map(write).join("|")})${ends ? "?" : ""}`;
}
