/**
 * Writes optional tools in a form whose grammar costs little: `oneOf` with one bare type beside everything that the
 * client wrote. Engines make the grammar of the `oneOf`, and templates show the whole schema to the model.
 */
import { ApiError, invalid } from "@weiche/shared/errors.ts";
import { numberOf, plainName } from "@weiche/shared/http/kept-json.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import type { Tool } from "../engines/dialects/dialect.ts";
import type { SchemaBounds } from "../engines/dialects/schema-bounds.ts";
import type { Budget } from "./schema-budget.ts";
import { boundSchemas, requireFewCopies, type RequestSchema } from "./schema-cost.ts";
import { listed, literalsOf, referenceOf, referenceWords, shownName, type SchemaAt } from "./schema-alternatives.ts";
import { targetOf } from "./schema-pointer.ts";

/**
 * Returns the tools. A tool gets its light form if its own form costs too much, or if it costs much and the light form
 * costs no more of the budget. Throws an `ApiError` with the place if the light form does not help, or if a call is
 * required, because its schema must then be enforced. `budget`: the cost of the other schemas.
 */
export function fittingTools(tools: readonly Tool[], isOptional: boolean, budget: Budget): readonly Tool[] {
  return tools.map((tool, index) => {
    const { parameters } = tool.function;
    if (parameters === undefined) return tool;
    const at = `tools[${index}].function.parameters`;
    const whole: RequestSchema = { of: "tool", schema: parameters, at, isOptional };
    try {
      const fitting = fittingForm(whole, budget, isOptional ? lightRoot : undefined);
      return fitting === parameters ? tool : { ...tool, function: { ...tool.function, parameters: fitting } };
    } catch (error) {
      throw withName(error, tool.function.name);
    }
  });
}

const plainWord = /^[\w.-]{1,64}$/;

/** Adds the name of the tool to a refusal, because a client with many tools does not know their numbers. */
function withName(error: unknown, name: string): unknown {
  if (!(error instanceof ApiError) || !plainWord.test(name)) return error;
  const { kind, message, param } = error;
  return new ApiError(kind, `${message.slice(0, -1)} (tool ${name}).`, { param });
}

/**
 * Returns the light form, or undefined if the schema has none that costs at most `most`. Throws if it does not fit
 * either.
 */
type Lighten = (whole: RequestSchema, budget: Budget, most?: Budget) => Json | undefined;

/**
 * Adds the cost of the schema to the budget, in the form that is returned. Without `lighten`, the schema stays as
 * written.
 */
function fittingForm(whole: RequestSchema, budget: Budget, lighten: Lighten | undefined): unknown {
  const { schema, at } = whole;
  const attempt = budget.copy();
  const tooMuch = misfit(whole, attempt);
  const isCheap = !tooMuch && !attempt.isWide;
  if (isCheap || !lighten) {
    if (tooMuch) throw tooMuch;
    budget.take(attempt);
    return schema;
  }
  const light = budget.copy();
  try {
    budget.lose(attempt, at, tooMuch ? "needed" : "spare");
    const form = lighten(whole, light, tooMuch ? undefined : attempt);
    if (form !== undefined) {
      budget.take(light);
      return form;
    }
  } catch (error) {
    if (tooMuch || !(error instanceof ApiError)) throw error;
  }
  if (tooMuch) throw tooMuch;
  budget.take(attempt);
  return schema;
}

/** Adds the cost of a schema as written. Returns the error if it does not fit. */
function misfit(schema: RequestSchema, attempt: Budget): ApiError | undefined {
  try {
    boundSchemas([schema], attempt.bounds, attempt);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error;
  }
}

/**
 * Returns a light form whose properties are each cheap or light as well. For templates that write each argument in its
 * own tags, engines make a grammar of each property.
 */
function lightRoot(root: RequestSchema, budget: Budget, most?: Budget): Json | undefined {
  const { schema, at } = root;
  const { bounds } = budget;
  const { references, length } = readReferences(schema, at, bounds);
  const free = freed(schema, { pointer: "#", references, most });
  if (!free) return undefined;
  const document = { ...root, length };
  const named = isObject(free["properties"]) ? Object.entries(free["properties"]) : [];
  if (named.length > bounds.lightPropertiesMax)
    throw invalid(
      `${at}.properties`,
      `must be at most ${bounds.lightPropertiesMax} properties, unless they are in required: there are ${named.length}`,
    );
  const properties: [name: string, form: unknown][] = [];
  for (const [marked, property] of named) {
    const name = plainName(marked);
    const of = { ...root, schema: property, at: `${at}.properties.${shownName(name)}`, document };
    const pointer = `#/properties/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const lighten: Lighten = (one, within, atMost) => {
      const form = freed(one.schema, { pointer, references, most: atMost });
      return form && lightProperty(form, { of: one, budget: within, most: atMost });
    };
    properties.push([marked, fittingForm(of, budget, lighten)]);
    // A definition counts for each property that refers to it, but only once for the whole schema.
    if (most && !budget.isWithin(most)) return undefined;
  }
  const whole = named.length > 0 ? { ...free, properties: Object.fromEntries(properties) as Json } : free;
  return { ...whole, oneOf: [{ type: "object" }] };
}

interface Property {
  readonly of: RequestSchema;
  readonly budget: Budget;
  readonly most: Budget | undefined;
}

function lightProperty(free: Json, { of, budget, most }: Property): Json | undefined {
  const type = most ? typeOf(free) : typesOf(of, { document: of.document!, budget, levels: 0 });
  if (type === undefined && most) return undefined;
  return { ...free, oneOf: [type === undefined ? anyValue : { type }] };
}

/** llama.cpp takes an empty schema for an object. With a comment, it is any value. */
const anyValue = { $comment: "any value" };

const movedWords: readonly string[] = [...referenceWords, "oneOf"];

interface Place {
  /** The JSON pointer of the schema in its document. */
  readonly pointer: string;
  /** All references of the document. */
  readonly references: ReadonlySet<string>;
  /** Set if the schema fits as written, so that nothing need move. */
  readonly most: Budget | undefined;
}

/**
 * Returns the schema so that engines make the grammar of an added `oneOf`. A reference has priority over it, and a
 * schema has only one `oneOf`. Both move into an `allOf`, where they mean the same. Returns undefined if they may not
 * move, for example because a reference leads into the `oneOf`.
 */
function freed(schema: unknown, { pointer, references, most }: Place): Json | undefined {
  if (!isObject(schema)) return undefined;
  const moved = Object.entries(schema).filter(([word]) => movedWords.includes(word));
  if (moved.length === 0) return schema;
  if (most || references.values().some((reference) => reference.startsWith(`${pointer}/oneOf`))) return undefined;
  const others = Object.entries(schema).filter(([word]) => !movedWords.includes(word));
  const parts = [...listed(schema["allOf"]), ...moved.map(([word, value]) => ({ [word]: value }))];
  return { ...Object.fromEntries(others), allOf: parts } as Json;
}

/** Returns the type or types that the schema itself names. */
function typeOf(schema: Json): unknown {
  if (schema["type"] !== undefined) return schema["type"];
  if (isObject(schema["properties"])) return "object";
  return schema["items"] === undefined ? undefined : "array";
}

interface TypeSearch {
  readonly document: SchemaAt;
  readonly budget: Budget;
  readonly levels: number;
}

const levelsMax = 16;

/** Returns the types that a value of the schema may have, by its references, unions and values, too. */
function typesOf({ schema, at }: SchemaAt, search: TypeSearch): unknown {
  const { document, budget, levels } = search;
  if (!isObject(schema) || levels > levelsMax) return undefined;
  const named = typeOf(schema);
  if (named !== undefined) return named;
  const values = literalsOf(schema);
  budget.step(at, 1 + values.length);
  if (values.length > 0) return oneOrMore(values.map(typeOfValue));
  const within = (one: unknown) => typesOf({ schema: one, at }, { ...search, levels: levels + 1 });
  const reference = referenceOf(schema);
  if (reference !== undefined) return within(targetOf(document, reference)?.schema);
  for (const part of listed(schema["allOf"])) {
    const types = within(part);
    if (types !== undefined) return types;
  }
  const either = ["anyOf", "oneOf"].flatMap((word) => listed(schema[word])).map(within);
  return either.includes(undefined) ? undefined : oneOrMore(either.flat());
}

function oneOrMore(types: readonly unknown[]): unknown {
  const each = [...new Set(types)];
  return each.length > 1 ? each : each[0];
}

function typeOfValue(value: unknown): string {
  if (value === null) return "null";
  if (numberOf(value) !== undefined) return "number";
  return Array.isArray(value) ? "array" : typeof value;
}

/**
 * Returns all references of the document and its length. References that the light form leaves out count too, because
 * llama.cpp resolves them.
 */
function readReferences(schema: unknown, at: string, bounds: SchemaBounds) {
  const references = new Set<string>();
  const { length } = JSON.stringify(schema, (name, value: unknown) => {
    if (referenceWords.includes(name) && typeof value === "string") references.add(value);
    return value;
  });
  requireFewCopies(references.size, length, at, bounds);
  return { references, length };
}
