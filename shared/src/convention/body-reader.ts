/**
 * Reads request bodies by their TypeBox schemas. A compiled check decides whether a body is valid. The first mistake is
 * found here, because TypeBox would collect all mistakes, which takes seconds for a large body.
 */
import { Type, type Static, type TArray, type TObject, type TProperties, type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { invalid } from "../errors.ts";
import { isObject } from "../json.ts";

/** A type without `null`, at every depth. */
export type Declared<T> = T extends readonly (infer Item)[]
  ? Declared<Item>[]
  : T extends object
    ? { [Name in keyof T]: Declared<Exclude<T[Name], null>> }
    : T;

interface BodyReader<Body> {
  /**
   * Returns the value itself. Throws a 400 that names the first wrong parameter and never quotes its value. Converts
   * nothing ("1" is not a number), treats `null` as absent, and ignores undeclared fields.
   */
  check(value: unknown): Body;
  /** Checks the value and returns a copy with only the declared fields, at every depth and without `null`. */
  declared(value: unknown): Declared<Body>;
}

/** Makes a reader. `together` throws for fields that are valid alone but not together. */
export function bodyReader<Schema extends TSchema>(
  schema: Schema,
  together: (body: Static<Schema>) => void = () => {},
): BodyReader<Static<Schema>> {
  const validator = Compile(schema);
  const reader = readerOf(schema);
  const check = (value: unknown) => {
    if (!validator.Check(value)) {
      const { at, what } = reader.mistakeIn(value) ?? { at: "", what: "is not valid" };
      throw invalid(at.replace(/^\./, ""), what);
    }
    together(value as Static<Schema>);
    return value as Static<Schema>;
  };
  return { check, declared: (value) => reader.declared(check(value)) as Declared<Static<Schema>> };
}

/** Declares an optional parameter. `null` counts as absent. */
export function optional<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

/** Declares a field with its own message for every mistake. `also` checks rules that the schema cannot express. */
export function worded<Schema extends TSchema>(
  schema: Schema,
  what: string,
  also: (value: Static<Schema>) => boolean = () => true,
) {
  return Type.Refine(schema, also, () => what);
}

/**
 * Declares a name or an id, which is looked up, so NUL and lone surrogates are refused. In other texts they are
 * replaced.
 */
export function name(bounds: { readonly minLength?: number } = {}) {
  return worded(
    Type.String(bounds),
    "must be a string without NUL characters and lone surrogates",
    (text) => text.isWellFormed() && !text.includes("\0"),
  );
}

interface Mistake {
  /**
   * A path such as `.messages[0].role`, empty for the value itself. Its names come from the schema, never from the
   * body.
   */
  readonly at: string;
  readonly what: string;
}

/** Finds a value's first mistake by one schema, and its declared part. */
interface Reader {
  /** Describes a valid value, in words that follow "must be". */
  readonly expected: string;
  /** Returns whether the value is of this kind, even with a wrong content. This chooses the member of a union. */
  fits(value: unknown): boolean;
  mistakeIn(value: unknown): Mistake | undefined;
  /** Returns the declared part of a value without mistakes. */
  declared(this: void, value: unknown): unknown;
}

const asItIs = (value: unknown) => value;
const isPlain = ({ declared }: Reader) => declared === asItIs;

function readerOf(schema: TSchema): Reader {
  if (Type.IsUnion(schema)) return unionReader(schema.anyOf.filter((member) => !Type.IsNull(member)));
  if (Type.IsObject(schema)) return objectReader(schema);
  if (Type.IsArray(schema)) return arrayReader(schema);
  return valueReader(schema);
}

/** Makes the reader of a text, a word, a number or a boolean. */
function valueReader(schema: TSchema): Reader {
  const validator = Compile(schema);
  const expected = expectedValue(schema);
  const words = Type.IsRefine(schema) ? schema["~refine"][0]!.error({} as never) : `must be ${expected}`;
  const type =
    Type.IsNumber(schema) || Type.IsInteger(schema) ? "number" : Type.IsBoolean(schema) ? "boolean" : "string";
  return {
    expected,
    fits: (given) => typeof given === type,
    mistakeIn(given) {
      if (validator.Check(given)) return undefined;
      return { at: "", what: given === "" && expected === "a string" ? "must not be empty" : words };
    },
    declared: asItIs,
  };
}

function expectedValue(schema: TSchema): string {
  if (Type.IsLiteral(schema)) return String(schema.const);
  if (Type.IsEnum(schema)) return oneOf(schema.enum);
  if (Type.IsString(schema)) return "a string";
  if (Type.IsBoolean(schema)) return "true or false";
  const { minimum, maximum } = schema as Bounds;
  return `${Type.IsInteger(schema) ? "an integer" : "a number"}${range("from", minimum, maximum)}`;
}

/** TypeBox has these in its schemas, but not in their types. */
interface Bounds {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

function range(word: "from" | "of", least: number | undefined, most: number | undefined, unit = ""): string {
  const bound = most ?? least;
  const units = unit === "" || bound === 1 ? unit : `${unit}s`;
  if (least === most && least !== undefined) return ` of exactly ${least}${units}`;
  if (least !== undefined && most !== undefined) return ` ${word} ${least} to ${most}${units}`;
  if (least !== undefined) return ` of at least ${least}${units}`;
  return most === undefined ? "" : ` of at most ${most}${units}`;
}

function unionReader(schemas: readonly TSchema[]): Reader {
  const readers = schemas.map(readerOf);
  if (readers.length === 1) return readers[0]!;
  const expected = [...new Set(readers.map((reader) => reader.expected))].join(" or ");
  const tag = tagOf(schemas.filter(Type.IsObject));
  const choose = (given: unknown) => readers.find((reader) => reader.fits(given));
  return {
    expected,
    fits: (given) => choose(given) !== undefined,
    mistakeIn(given) {
      const reader = choose(given);
      if (reader) return reader.mistakeIn(given);
      if (!tag || !isObject(given)) return { at: "", what: `must be ${expected}` };
      return { at: `.${tag.name}`, what: given[tag.name] == null ? required : `must be ${oneOf(tag.words)}` };
    },
    declared: readers.every(isPlain) ? asItIs : (given) => choose(given)!.declared(given),
  };
}

const required = "is required";

/** Finds the field that distinguishes a union's members: each has a fixed word there. */
function tagOf(members: readonly TObject[]): { readonly name: string; readonly words: readonly unknown[] } | undefined {
  const names = Object.keys(members[0]?.properties ?? {});
  const wordsOf = (name: string) => members.map(({ properties }) => properties[name]).filter(Type.IsLiteral);
  const name = names.find((each) => wordsOf(each).length === members.length);
  return name === undefined ? undefined : { name, words: wordsOf(name).map((word) => word.const) };
}

function objectReader({ properties }: TObject): Reader {
  const fields = Object.entries(properties as TProperties).map(([name, schema]) => {
    return { name, at: `.${name}`, reader: readerOf(schema), isRequired: !Type.IsOptional(schema) };
  });
  const words = Object.entries(properties as TProperties).filter(([, schema]) => Type.IsLiteral(schema));
  const tags = words.map(([name, schema]) => ({ name, word: (schema as { const?: unknown }).const }));
  return {
    expected: "an object",
    fits: (given) => isObject(given) && tags.every(({ name, word }) => given[name] === word),
    mistakeIn(given) {
      if (!isObject(given)) return { at: "", what: "must be an object" };
      for (const { name, at, reader, isRequired } of fields) {
        const field = given[name];
        if (field != null) {
          const mistake = reader.mistakeIn(field);
          if (mistake) return { at: at + mistake.at, what: mistake.what };
        } else if (isRequired) return { at, what: required };
      }
      return undefined;
    },
    declared(given) {
      // An object without declared fields may have any.
      if (fields.length === 0) return given;
      const copy: Record<string, unknown> = {};
      for (const { name, reader } of fields) {
        const field = (given as Record<string, unknown>)[name];
        if (field != null) copy[name] = reader.declared(field);
      }
      return copy;
    },
  };
}

function arrayReader(schema: TArray): Reader {
  const { minItems, maxItems } = schema as Bounds;
  const item = readerOf(schema.items);
  const expected = `an array${range("of", minItems, maxItems, " item")}`;
  return {
    expected,
    fits: Array.isArray,
    mistakeIn(given) {
      if (!Array.isArray(given) || given.length < (minItems ?? 0) || given.length > (maxItems ?? Infinity))
        return { at: "", what: `must be ${expected}` };
      for (const [index, each] of given.entries()) {
        const mistake = item.mistakeIn(each);
        if (mistake) return { at: `[${index}]${mistake.at}`, what: mistake.what };
      }
      return undefined;
    },
    declared: isPlain(item) ? asItIs : (given) => (given as unknown[]).map(item.declared),
  };
}

function oneOf(words: readonly unknown[]): string {
  return words.length === 1 ? String(words[0]) : `one of ${words.join(", ")}`;
}
