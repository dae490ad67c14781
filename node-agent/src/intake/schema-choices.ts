/**
 * Counts the ways in which an answer can continue under a schema, at the place with the most ways. For every token of
 * the answer, an engine tries all its tokens against each way.
 */
import { invalid } from "@weiche/shared/errors.ts";
import { branchesOf, literalTrie } from "@weiche/shared/literal-trie.ts";
import { isObject } from "@weiche/shared/json.ts";
import { plainWords } from "../engines/dialects/enum-pattern.ts";
import type { MergedLiterals } from "../engines/dialects/schema-bounds.ts";
import type { PatternCost } from "./pattern-cost.ts";
import { keyChoicesOf, literalsOf, optionalOf, type Alternative, type SchemaAt } from "./schema-alternatives.ts";

interface Choices {
  readonly choices: number;
  /** The number of the outermost schema that the schema contains again. Infinity if there is none. */
  readonly loopsTo: number;
}

export interface Cost extends Choices {
  readonly size: number;
}

export interface Inside {
  readonly merged: MergedLiterals;
  inside(alternative: Alternative, of: SchemaAt, name?: string): Cost;
  pattern(of: Alternative): PatternCost;
  readonly step: (at: string, count: number) => void;
  /** Gets the number of optional properties that may come next at one place. */
  readonly optional: (count: number) => void;
}

const spaces = 3;
const digitChoices = 4;
const choicesOf = { scalar: 5, any: 10, string: 3 };

/** Returns the choices of a value that may be any of these alternatives. */
export function openChoices(alternatives: readonly Alternative[], scope: Inside): Choices {
  const objects = alternatives.filter(({ kind, parts }) => kind === "object" || parts.length > 0);
  const anything = alternatives.filter(({ kind, parts }) => kind === "any" && parts.length === 0).length;
  const open = { choices: anything * choicesOf.any, loopsTo: Infinity, from: anything };
  const arrays = alternatives.filter(({ kind }) => kind === "array");
  const items = arrays.flatMap((array) => array.others.map((one) => scope.inside(array, one)));
  if (arrays.length + anything > 1) forbidLoops(items, arrays.at(-1)?.at);
  const found = [
    { choices: sum(alternatives.map((one) => plainChoices(one, scope))), loopsTo: Infinity },
    { choices: spaces + sum(items.map(({ choices }) => choices)) + open.choices, loopsTo: least(items) },
    ...groupsOf(objects, scope).map((group) => objectChoices(group, open, scope)),
  ];
  return { choices: Math.max(...found.map(({ choices }) => choices)), loopsTo: least(found) };
}

/** Returns the choices at the beginning of a value, and inside it for a string or a number. */
function plainChoices(alternative: Alternative, scope: Inside): number {
  const { kind, schema, parts } = alternative;
  if (parts.length > 0) return sum(parts.map((part) => plainChoices(part, scope)));
  if (kind === "literal") return literalChoices(literalsOf(schema), scope.merged);
  if (kind === "string" && typeof schema["pattern"] === "string") return scope.pattern(alternative).choices;
  return kind === "object" || kind === "array" ? 1 : choicesOf[kind];
}

/** Longer lists are not compared. Each of their values counts as one choice. */
const literalsMax = 2_000;

function literalChoices(values: readonly unknown[], merged: MergedLiterals): number {
  if (merged === "none" || values.length > literalsMax) return values.length;
  const words = merged === "all" ? values.map((value) => JSON.stringify(value)) : plainWords(values);
  return branchesOf(literalTrie(words)) + values.length - words.length;
}

/** Returns the choices among objects that the text so far does not distinguish. */
function objectChoices(
  objects: readonly Alternative[],
  open: { readonly choices: number; readonly from: number },
  scope: Inside,
): Choices {
  const names = new Map<string, Cost[]>();
  const others: Cost[] = [];
  let keys = 0;
  for (const object of objects) {
    const { properties, others: more } = object;
    keys += keyChoicesOf(object);
    scope.optional(optionalOf(object));
    for (const [name, schemas] of properties) {
      const costs = schemas.map((one) => scope.inside(object, one, name));
      names.getOrInsertComputed(name, () => []).push(...costs);
    }
    others.push(...more.map((one) => scope.inside(object, one)));
  }
  const openFrom = open.from + (objects.length > 1 ? others.length : 0);
  let widest = sum(others.map(({ choices }) => choices));
  for (const costs of names.values()) {
    if (costs.length + openFrom > 1) forbidLoops([...costs, ...(objects.length > 1 ? others : [])], objects.at(-1)!.at);
    const beside = objects.length > 1 ? sum(others.map(({ choices }) => choices)) : 0;
    widest = Math.max(widest, sum(costs.map(({ choices }) => choices)) + beside);
  }
  const all = [...names.values()].flat().concat(others);
  // A value ends before the next name begins, but the digits of a number may continue.
  return { choices: Math.max(keys + digitChoices, widest) + open.choices, loopsTo: least(all) };
}

/** Throws if an alternative contains itself, because each further level would double the choices. */
function forbidLoops(costs: readonly Cost[], at: string | undefined): void {
  if (at !== undefined && least(costs) !== Infinity)
    throw invalid(
      at,
      "must be told apart from its alternatives by its first required property, because it contains itself",
    );
}

/** Groups objects that begin alike. An object with a different first property, or another constant in it, is alone. */
function groupsOf(objects: readonly Alternative[], { step }: Inside): (readonly Alternative[])[] {
  if (objects.length < 2) return objects.length === 0 ? [] : [objects];
  const byFirst = new Map<string, Alternative[]>();
  for (const object of objects) {
    const first = object.properties.keys().find((name) => object.required.has(name));
    if (first === undefined) return [objects];
    byFirst.getOrInsertComputed(first, () => []).push(object);
  }
  return [...byFirst].flatMap(([first, group]) => {
    const values = group.map(({ properties }) => {
      const { schema } = properties.get(first)![0]!;
      return isObject(schema) ? literalsOf(schema) : [];
    });
    const all = values.flat();
    step(group[0]!.at, all.length);
    const isTold =
      values.every((some) => some.length > 0) && new Set(all.map((one) => JSON.stringify(one))).size === all.length;
    return isTold ? group.map((one) => [one]) : [group];
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function least(costs: readonly { readonly loopsTo: number }[]): number {
  return costs.reduce((lowest, { loopsTo }) => Math.min(lowest, loopsTo), Infinity);
}
