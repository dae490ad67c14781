/**
 * Writes optional tools in a form whose grammar costs little: `oneOf` with one bare type beside everything that the
 * client wrote. Engines make the grammar of the `oneOf`, and templates show the whole schema to the model.
 */
import { ApiError, invalid } from "@weiche/shared/errors.ts";
import { numberOf } from "@weiche/shared/http/kept-json.ts";
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
    const fitting = fittingForm(whole, budget, isOptional ? lightRoot : undefined);
    return fitting === parameters ? tool : { ...tool, function: { ...tool.function, parameters: fitting } };
  });
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
  const free = freed(schema, most);
  if (!free) return undefined;
  const document = { ...root, length: checkReferences(free, at, bounds) };
  const named = isObject(free["properties"]) ? Object.entries(free["properties"]) : [];
  if (named.length > bounds.lightPropertiesMax)
    throw invalid(
      `${at}.properties`,
      `must be at most ${bounds.lightPropertiesMax} properties, unless they are in required: there are ${named.length}`,
    );
  const properties: [name: string, form: unknown][] = [];
  for (const [name, property] of named) {
    const of = { ...root, schema: property, at: `${at}.properties.${shownName(name)}`, document };
    properties.push([name, fittingForm(of, budget, lightProperty)]);
    // A definition counts for each property that refers to it, but only once for the whole schema.
    if (most && !budget.isWithin(most)) return undefined;
  }
  const whole = named.length > 0 ? { ...free, properties: Object.fromEntries(properties) as Json } : free;
  return { ...whole, oneOf: [{ type: "object" }] };
}

function lightProperty(property: RequestSchema, budget: Budget, most?: Budget): Json | undefined {
  const free = freed(property.schema, most);
  const type = free && (most ? typeOf(free) : typesOf(property, { document: property.document!, budget, levels: 0 }));
  return type === undefined ? undefined : { ...free, oneOf: [{ type }] };
}

/**
 * Returns the schema so that engines make the grammar of an added `oneOf`. A reference has priority over it, and moves
 * into an `allOf`, where it means the same. `most`: the schema fits as written, so nothing moves.
 */
function freed(schema: unknown, most: Budget | undefined): Json | undefined {
  if (!isObject(schema) || schema["oneOf"] !== undefined) return undefined;
  const words = Object.entries(schema).filter(([word]) => referenceWords.includes(word));
  if (words.length === 0) return schema;
  if (most) return undefined;
  const others = Object.entries(schema).filter(([word]) => !referenceWords.includes(word));
  const parts = [...listed(schema["allOf"]), ...words.map(([word, reference]) => ({ [word]: reference }))];
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
  const either = listed(schema["anyOf"]).map(within);
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

/** Returns the length of the document. All its references count, including references that the light form leaves out. */
function checkReferences(schema: Json, at: string, bounds: SchemaBounds): number {
  const references = new Set<string>();
  const length = JSON.stringify(schema, (name, value: unknown) => {
    if (referenceWords.includes(name) && typeof value === "string") references.add(value);
    return value;
  }).length;
  requireFewCopies(references.size, length, at, bounds);
  return length;
}
