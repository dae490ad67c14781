/**
 * Resolves the unions, references and type lists of a JSON Schema into the alternatives that a value may begin as: an
 * object, an array, a string, a literal or another plain value. Schemas inside of these are left unresolved.
 */
import { plainName } from "@weiche/shared/http/kept-json.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";

/** A schema within the document, and its path. */
export interface SchemaAt {
  readonly schema: unknown;
  readonly at: string;
}

export interface Alternative {
  readonly kind: "object" | "array" | "string" | "literal" | "scalar" | "any";
  readonly schema: Json;
  readonly at: string;
  /** Found through a `$ref` that an engine compiles once, however often it is used. */
  readonly isShared: boolean;
  /** The properties of an object in the order of the document. A name has several schemas if `allOf` repeats it. */
  readonly properties: ReadonlyMap<string, readonly SchemaAt[]>;
  readonly required: ReadonlySet<unknown>;
  /** The schemas of the other members of an object, or of the items of an array. */
  readonly others: readonly SchemaAt[];
  readonly parts: readonly Alternative[];
}

interface Expansion {
  /** Called with the number of alternatives so far. Throws if there are too many. */
  found(count: number, at: string): void;
  /** Called for each visited place. Throws if there are too many. */
  step(at: string, count?: number): void;
  /** Returns the target of a reference within the document. Undefined if there is none, which an engine refuses. */
  resolve(reference: string): SchemaAt | undefined;
  /** Throws for a schema that unfolds without end. */
  endless(at: string): never;
}

/** Keywords that imply the type that they constrain. */
const objectWords = ["properties", "additionalProperties", "required", "patternProperties"];
const arrayWords = ["items", "prefixItems", "minItems", "maxItems"];
const stringWords = ["pattern", "minLength", "maxLength", "format"];
/** Keywords with schemas for items and for members that are not in `properties`. */
const memberWords = ["additionalProperties", "patternProperties", "unevaluatedProperties", "dependentSchemas"];
const itemWords = ["items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"];
const mapWords: ReadonlySet<string> = new Set(["patternProperties", "dependentSchemas"]);
/** Keywords that refer to another schema. */
export const referenceWords: readonly string[] = ["$ref", "$dynamicRef", "$recursiveRef"];

export function alternativesOf(from: SchemaAt, expansion: Expansion): Alternative[] {
  const found: Alternative[] = [];
  expand(from, { expansion, found, entered: new Set(), isShared: false });
  return found;
}

interface Walk {
  readonly expansion: Expansion;
  readonly found: Alternative[];
  /** The schemas that are being expanded. One that occurs again unfolds without end. */
  readonly entered: Set<unknown>;
  readonly isShared: boolean;
}

function expand({ schema, at }: SchemaAt, walk: Walk): void {
  const { expansion, entered } = walk;
  expansion.step(at);
  if (!isObject(schema)) return add("any", { schema: {}, at }, walk);
  if (entered.has(schema)) expansion.endless(at);
  entered.add(schema);
  const reference = referenceOf(schema);
  const target = reference === undefined ? undefined : expansion.resolve(reference);
  if (target) expand(target, { ...walk, isShared: true });
  for (const word of ["anyOf", "oneOf"] as const)
    for (const [index, one] of listed(schema[word]).entries())
      expand({ schema: one, at: `${at}.${word}[${index}]` }, walk);
  if (Array.isArray(schema["allOf"])) walk.found.push(merged({ schema, at }, walk));
  else expandOwn({ schema, at }, reference !== undefined, walk);
  entered.delete(schema);
}

function expandOwn({ schema, at }: { schema: Json; at: string }, isReference: boolean, walk: Walk): void {
  if (schema["const"] !== undefined || Array.isArray(schema["enum"])) {
    // Engines repeat the literals for each listed type.
    const copies = Math.max(1, listed(schema["type"]).length);
    for (let copy = 0; copy < copies; copy++) add("literal", { schema, at }, walk);
    return;
  }
  const types = typeof schema["type"] === "string" ? [schema["type"]] : listed(schema["type"]);
  for (const type of types.length > 0 ? types : guessedTypes(schema)) add(kindOf(type), { schema, at }, walk);
  const isUnion = isReference || listed(schema["anyOf"]).length + listed(schema["oneOf"]).length > 0;
  if (types.length === 0 && guessedTypes(schema).length === 0 && !isUnion) add("any", { schema, at }, walk);
}

function guessedTypes(schema: Json): readonly string[] {
  const named = (words: readonly string[]) => words.some((word) => schema[word] !== undefined);
  return [
    ...(named(objectWords) ? ["object"] : []),
    ...(named(arrayWords) ? ["array"] : []),
    ...(named(stringWords) ? ["string"] : []),
  ];
}

function kindOf(type: unknown): Alternative["kind"] {
  if (type === "object" || type === "array" || type === "string") return type;
  return "scalar";
}

function add(kind: Alternative["kind"], { schema, at }: { schema: Json; at: string }, walk: Walk): void {
  walk.expansion.step(at);
  const words = kind === "object" ? memberWords : kind === "array" ? itemWords : [];
  walk.found.push({
    ...{ kind, schema, at, isShared: walk.isShared },
    properties: kind === "object" ? propertiesOf({ schema, at }, walk.expansion) : new Map(),
    required: new Set(listed(schema["required"])),
    others: words.flatMap((word) => schemasIn(schema[word], `${at}.${word}`, mapWords.has(word))),
    parts: [],
  });
  walk.expansion.found(Math.max(walk.found.length, keyChoicesOf(walk.found.at(-1)!)), at);
}

/** Choices of an optional property: its name, and the white space before it. */
const keyChoices = 2;

/** Returns the number of choices where the name of a member begins. */
export function keyChoicesOf(object: Alternative): number {
  return keyChoices * (optionalOf(object) + 1);
}

/** Returns the number of optional properties. All unnamed members count as one. */
export function optionalOf({ properties, required, others }: Alternative): number {
  let optional = Math.min(1, others.length) + properties.size;
  for (const name of required) if (properties.has(name as string)) optional -= 1;
  return optional;
}

function propertiesOf({ schema, at }: { schema: Json; at: string }, expansion: Expansion): Map<string, SchemaAt[]> {
  const named = isObject(schema["properties"]) ? Object.entries(schema["properties"]) : [];
  expansion.step(at, named.length);
  return new Map(
    named.map(([marked, of]) => {
      const name = plainName(marked);
      return [name, [{ schema: of, at: `${at}.properties.${shownName(name)}` }]];
    }),
  );
}

/** Returns one schema, or the schemas of a list or a map. */
function schemasIn(value: unknown, at: string, isMap: boolean): SchemaAt[] {
  if (Array.isArray(value)) return value.map((schema: unknown, index) => ({ schema, at: `${at}[${index}]` }));
  if (isMap && isObject(value))
    return Object.entries(value).map(([name, schema]) => ({ schema, at: `${at}.${shownName(name)}` }));
  return isObject(value) || value === true ? [{ schema: value, at }] : [];
}

const partSteps = 4;

/** Merges the parts of an `allOf` into one object, as engines do. References are copied in, not shared. */
function merged({ schema, at }: { schema: Json; at: string }, walk: Walk): Alternative {
  const parts: Alternative[] = [];
  const inside = { ...walk, found: parts, isShared: false };
  for (const [index, part] of listed(schema["allOf"]).entries()) {
    walk.expansion.step(at, partSteps);
    expand({ schema: part, at: `${at}.allOf[${index}]` }, inside);
  }
  expandOwn({ schema, at }, true, inside);
  const properties = new Map<string, SchemaAt[]>();
  for (const part of parts) {
    walk.expansion.step(part.at, part.properties.size);
    for (const [name, schemas] of part.properties) properties.getOrInsertComputed(name, () => []).push(...schemas);
  }
  const kind = parts.find((part) => part.kind !== "any")?.kind ?? "any";
  return {
    ...{ kind, schema, at, isShared: walk.isShared, properties },
    required: new Set(parts.flatMap(({ required }) => [...required])),
    others: parts.flatMap(({ others }) => others),
    parts,
  };
}

export function literalsOf(schema: Json): readonly unknown[] {
  return schema["const"] === undefined ? listed(schema["enum"]) : [schema["const"]];
}

export function referenceOf(schema: Json): string | undefined {
  return referenceWords.map((word) => schema[word]).find((value) => typeof value === "string");
}

export function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the name of a member for an error message, or `*` if it is long or not a plain word. */
export function shownName(name: string): string {
  return /^[\w$-]{1,40}$/.test(name) ? name : "*";
}
