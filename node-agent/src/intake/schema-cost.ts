/**
 * Limits what the JSON Schemas of a request cost an engine that makes grammars of them. Each schema is walked once, and
 * the walk itself is limited.
 */
import { invalid } from "@weiche/shared/errors.ts";
import { numberOf } from "@weiche/shared/http/kept-json.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import type { MergedLiterals, SchemaBounds } from "../engines/dialects/schema-bounds.ts";
import { Budget } from "./schema-budget.ts";
import { patternCost, type PatternCost } from "./pattern-cost.ts";
import { alternativesOf, literalsOf, referenceOf } from "./schema-alternatives.ts";
import type { Alternative, SchemaAt } from "./schema-alternatives.ts";
import { targetOf } from "./schema-pointer.ts";
import { openChoices, type Cost, type Inside } from "./schema-choices.ts";

export interface RequestSchema extends SchemaAt {
  readonly of: "tool" | "answer";
  /** The model need not call this tool. */
  readonly isOptional?: boolean;
  /** The document that its references refer to, if the schema is a part of it. */
  readonly document?: SchemaAt & { readonly length: number };
}

/**
 * Adds the cost of the schemas to the budget and returns it. Throws an `ApiError` with the place in the schema, never
 * with its content.
 */
export function boundSchemas(
  schemas: readonly RequestSchema[],
  bounds: SchemaBounds,
  budget: Budget = new Budget(bounds),
): Budget {
  for (const schema of schemas) new Walk(schema, budget).measure();
  return budget;
}

/** Limits the references, because engines copy the document for each different one. */
export function requireFewCopies(references: number, length: number, at: string, bounds: SchemaBounds): void {
  if (references * length > bounds.copiedBytesMax)
    throw invalid(at, "must be a schema with fewer different references, or a smaller one");
}

interface Way {
  readonly depth: number;
  /** The property names on the path, from which llama.cpp builds the names of its rules. */
  readonly name: string;
  /** The references on the path that an engine makes a rule of. */
  readonly references: number;
}

const start: Way = { depth: 0, name: "", references: 0 };

class Walk {
  readonly #root: RequestSchema;
  readonly #document: SchemaAt;
  readonly #merged: MergedLiterals;
  readonly #patternRepetitionMax: number;
  readonly #budget: Budget;
  readonly #known = new Map<unknown, Cost>();
  /** The schemas being walked, each with the number of shared references that led to it. */
  readonly #open = new Map<unknown, { readonly index: number; readonly references: number }>();
  readonly #names = new Map<string, number>();
  readonly #patterns = new Map<string, PatternCost>();
  readonly #targets = new Map<string, SchemaAt | undefined>();

  constructor(root: RequestSchema, budget: Budget) {
    this.#root = root;
    this.#document = root.document ?? root;
    this.#merged = budget.bounds.merges[root.of];
    this.#patternRepetitionMax = root.isOptional ? Infinity : budget.bounds.patternRepetitionMax;
    this.#budget = budget;
  }

  measure(): void {
    this.#measure();
    if (this.#targets.size === 0) return;
    requireFewCopies(this.#targets.size, this.#documentLength(), this.#root.at, this.#budget.bounds);
  }

  /** Computed once, because a document may have hundreds of parts. */
  #documentLength(): number {
    const { document, schema } = this.#root;
    return document?.length ?? JSON.stringify(schema).length;
  }

  #measure(): void {
    this.#budget.spend(this.#cost(this.#root, start).size, this.#root.at);
    // Iterating a Map includes entries that are added meanwhile.
    for (const target of this.#targets.values())
      if (target && target.schema !== this.#root.schema) this.#budget.spend(this.#cost(target, start).size, target.at);
  }

  #cost(of: SchemaAt, way: Way): Cost {
    const { schema, at } = of;
    const { depth, references } = way;
    const known = this.#known.get(schema);
    if (known) return known;
    const again = this.#open.get(schema);
    // Engines make a rule of the target of a reference, but copy the target of a reference in an allOf.
    if (again?.references === references)
      throw invalid(at, "must be a schema that contains itself by a plain $ref, not within allOf");
    if (again) return { size: 1, choices: 1, loopsTo: again.index };
    if (depth > this.#budget.bounds.depthMax)
      throw invalid(at, `must be a schema with at most ${this.#budget.bounds.depthMax} levels, references followed`);
    const index = this.#open.size;
    this.#open.set(schema, { index, references });
    const cost = this.#enter(of, way);
    this.#open.delete(schema);
    this.#budget.check(cost.size, at);
    this.#budget.choose(cost.choices, at);
    const closed = { ...cost, loopsTo: cost.loopsTo < index ? cost.loopsTo : Infinity };
    if (isObject(schema)) this.#known.set(schema, closed);
    return closed;
  }

  #enter({ schema, at }: SchemaAt, { depth, name, references }: Way): Cost {
    const target = this.#soleReference(schema);
    if (target) {
      this.#budget.step(at);
      const cost = this.#cost(target, { depth: depth + 1, name, references: references + 1 });
      return { ...cost, size: 1 };
    }
    const inside = ({ isShared }: Alternative, of: SchemaAt, property = "") =>
      this.#cost(of, {
        depth: depth + 1,
        name: ruleName(name, property),
        references: references + Number(isShared),
      });
    const alternatives = alternativesOf(
      { schema, at },
      {
        step: (place, count) => this.#budget.step(place, count),
        resolve: (reference) => this.#resolve(reference),
        found: (count, place) => this.#budget.choose(count, place),
        endless: (place) => {
          throw invalid(place, "must be a schema that does not lead to itself without a property or an item between");
        },
      },
    );
    let size = 1;
    for (const alternative of alternatives) {
      size += alternative.isShared ? 1 : this.#size(alternative, name, inside);
      this.#budget.check(size, alternative.at);
    }
    const pattern = (of: Alternative) => this.#pattern(of);
    const step = (place: string, count: number) => this.#budget.step(place, count);
    const optional = (count: number) => this.#budget.optional(count);
    return { ...openChoices(alternatives, { merged: this.#merged, inside, pattern, step, optional }), size };
  }

  #soleReference(schema: unknown): SchemaAt | undefined {
    if (!isObject(schema) || ["anyOf", "oneOf", "allOf"].some((word) => schema[word] !== undefined)) return undefined;
    const reference = referenceOf(schema);
    return reference === undefined ? undefined : this.#resolve(reference);
  }

  #size(alternative: Alternative, name: string, inside: Inside["inside"]): number {
    const { kind, schema, at, properties, others, parts } = alternative;
    if (parts.length > 0) return parts.reduce((sum, part) => sum + this.#size(part, name, inside), 1);
    let size =
      name.length +
      (typeof schema["pattern"] === "string"
        ? ruleSize + this.#pattern(alternative).size
        : ownSize(kind, schema, this.#budget.bounds));
    for (const [property, schemas] of properties) {
      this.#checkName(name, property, `${at}.properties`);
      // The name itself, and three rules that contain it in their names.
      for (const one of schemas)
        size += inside(alternative, one, property).size + 4 * property.length + 3 * name.length + ruleSize;
      this.#budget.check(size, at);
    }
    for (const one of others) size += inside(alternative, one).size;
    return size;
  }

  #checkName(name: string, property: string, at: string): void {
    const { nameLengthMax } = this.#budget.bounds;
    if (property.length > nameLengthMax)
      throw invalid(at, `must be an object with names of at most ${nameLengthMax} characters`);
    const rule = ruleName(name, property);
    const alike = this.#names.get(rule) ?? 0;
    this.#names.set(rule, alike + 1);
    // llama.cpp tries all existing rules of the same name for each new one.
    this.#budget.step(at, alike / alikeStep);
  }

  #pattern({ schema, at }: Alternative): PatternCost {
    const text = schema["pattern"] as string;
    const known = this.#patterns.get(text);
    if (known) return known;
    this.#budget.check(text.length, `${at}.pattern`);
    this.#budget.step(`${at}.pattern`, Math.ceil(text.length / patternStep));
    const { patternRepetitionSize } = this.#budget.bounds;
    const { size, choices, ways, repetitionMax } = patternCost(text);
    if (repetitionMax > this.#patternRepetitionMax)
      throw invalid(
        `${at}.pattern`,
        `must be a pattern that repeats nothing more than ${this.#patternRepetitionMax} times: use maxLength to limit a longer text`,
      );
    if (ways > this.#budget.bounds.waysMax)
      throw invalid(
        `${at}.pattern`,
        "must be a pattern that matches a text in one way only: no repetition of a part that can be empty, or that can continue where it ends",
      );
    const cost = { size: text.length + patternRepetitionSize * size, choices: choices + 2, ways, repetitionMax };
    this.#budget.check(cost.size, `${at}.pattern`);
    this.#budget.choose(cost.choices, `${at}.pattern`);
    this.#patterns.set(text, cost);
    return cost;
  }

  #resolve(reference: string): SchemaAt | undefined {
    if (this.#targets.has(reference)) return this.#targets.get(reference);
    this.#budget.step(this.#document.at, reference.split("/").length - 1);
    const found = targetOf(this.#document, reference);
    this.#targets.set(reference, found);
    return found;
  }
}

/** Characters of a rule besides its content: its name, and what an engine stores with it. */
const ruleSize = 40;
/** llama.cpp does not enforce more repetitions. */
const repetitionsMax = 2_000;

function ownSize(kind: Alternative["kind"], schema: Json, { rangeSize, formatSize }: SchemaBounds): number {
  switch (kind) {
    case "literal":
      return (
        ruleSize + literalsOf(schema).reduce((sum: number, value) => sum + (JSON.stringify(value)?.length ?? 0) + 4, 0)
      );
    case "string":
      return (
        ruleSize +
        elementSize * repetitions(schema["minLength"], schema["maxLength"]) +
        (schema["format"] === undefined ? 0 : formatSize)
      );
    case "array":
      return ruleSize + elementSize * repetitions(schema["minItems"], schema["maxItems"]);
    case "scalar":
      return (schema["minimum"] ?? schema["maximum"] ?? schema["exclusiveMinimum"] ?? schema["exclusiveMaximum"])
        ? rangeSize
        : ruleSize;
    case "object":
    case "any":
      return ruleSize;
  }
}

function ruleName(name: string, property: string): string {
  return property === "" ? name : `${name}-${property.replace(/[^a-zA-Z0-9-]+/g, "-")}`;
}

/** The number of names that llama.cpp tries in the time of one step. */
const alikeStep = 8;
/** The number of characters of a pattern that are read in the time of one step. */
const patternStep = 8;
/** The characters that count for each character of a string and each item of an array that a limit allows. */
const elementSize = 10;

function repetitions(minimum: unknown, maximum: unknown): number {
  const [least, most] = [numberOf(minimum), numberOf(maximum)];
  const count = most !== undefined && most <= repetitionsMax ? most : (least ?? 0);
  return Math.min(Math.max(0, count), repetitionsMax);
}
