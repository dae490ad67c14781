/**
 * Writes optional tools in a form whose grammar costs little: `oneOf` with one bare type beside everything that the
 * client wrote. Engines make the grammar of the `oneOf`, and templates show the whole schema to the model.
 */
import { ApiError, invalid } from "@weiche/shared/errors.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import type { Tool } from "../engines/dialects/dialect.ts";
import type { SchemaBounds } from "../engines/dialects/schema-bounds.ts";
import type { Budget } from "./schema-budget.ts";
import { boundSchemas, requireFewCopies, type RequestSchema } from "./schema-cost.ts";
import { referenceWords, shownName } from "./schema-alternatives.ts";

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
  if (!isObject(schema) || !isFree(schema)) return undefined;
  const document = { ...root, length: checkReferences(schema, at, bounds) };
  const named = isObject(schema["properties"]) ? Object.entries(schema["properties"]) : [];
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
  const whole = named.length > 0 ? { ...schema, properties: Object.fromEntries(properties) as Json } : schema;
  return { ...whole, oneOf: [{ type: "object" }] };
}

function lightProperty({ schema }: RequestSchema): Json | undefined {
  const type = isObject(schema) && isFree(schema) ? typeOf(schema) : undefined;
  return type === undefined ? undefined : { ...(schema as Json), oneOf: [{ type }] };
}

/** Returns whether engines make the grammar of an added `oneOf`. */
function isFree(schema: Json): boolean {
  return schema["oneOf"] === undefined && referenceWords.every((word) => schema[word] === undefined);
}

function typeOf(schema: Json): unknown {
  if (schema["type"] !== undefined) return schema["type"];
  if (isObject(schema["properties"])) return "object";
  return schema["items"] === undefined ? undefined : "array";
}

/** Returns the length of the document. All its references count, including those that the light form leaves out. */
function checkReferences(schema: Json, at: string, bounds: SchemaBounds): number {
  const references = new Set<string>();
  const length = JSON.stringify(schema, (name, value: unknown) => {
    if (referenceWords.includes(name) && typeof value === "string") references.add(value);
    return value;
  }).length;
  requireFewCopies(references.size, length, at, bounds);
  return length;
}
