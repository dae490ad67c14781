/**
 * The first mistake in a value that a schema does not allow. The library tells all of them and looks at the whole value for
 * it, which takes seconds for a large one: here the first wrong item of an array is found by a compiled check, and the
 * library is asked only about what holds nothing else.
 */
import { IsArray, IsObject, IsUnion, type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Errors } from "typebox/value";

export interface Mistake {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: {
    readonly requiredProperties?: readonly string[];
    readonly allowedValues?: readonly unknown[];
    readonly allowedValue?: unknown;
  };
}

/** Undefined for a value that is allowed. */
export type FindMistake = (value: unknown) => Mistake | undefined;

export function mistakeFinder(schema: TSchema): FindMistake {
  if (IsUnion(schema)) return inUnion(schema.anyOf.map(mistakeFinder));
  if (IsArray(schema)) return inArray(schema);
  if (IsObject(schema)) return inObject(schema);
  return (value) => itself(schema, value);
}

/** The first member speaks first, unless another one came further: its type fits, only its content does not. */
function inUnion(members: readonly FindMistake[]): FindMistake {
  return (value) => {
    const mistakes: Mistake[] = [];
    for (const find of members) {
      const mistake = find(value);
      if (!mistake) return undefined;
      mistakes.push(mistake);
    }
    return mistakes.find(({ keyword, instancePath }) => keyword !== "type" || instancePath !== "") ?? mistakes[0];
  };
}

function inArray(schema: TSchema & { readonly items: TSchema }): FindMistake {
  const { items, ...own } = schema;
  const item = Compile(items);
  const findInItem = mistakeFinder(items);
  return (value) => {
    const mistake = itself(own, value);
    if (mistake || !Array.isArray(value)) return mistake;
    const index = value.findIndex((each) => !item.Check(each));
    return index < 0 ? undefined : below(index, findInItem(value[index]));
  };
}

function inObject(schema: TSchema & { readonly properties: Readonly<Record<string, TSchema>> }): FindMistake {
  const { properties, ...own } = schema;
  const finders = Object.entries(properties).map(([name, property]) => [name, mistakeFinder(property)] as const);
  return (value) => {
    const mistake = itself(own, value);
    if (mistake) return mistake;
    for (const [name, find] of finders) {
      if (!Object.hasOwn(value as object, name)) continue;
      const within = below(name, find((value as Record<string, unknown>)[name]));
      if (within) return within;
    }
    return undefined;
  };
}

function below(name: string | number, mistake: Mistake | undefined): Mistake | undefined {
  return mistake && { ...mistake, instancePath: `/${name}${mistake.instancePath}` };
}

function itself(schema: TSchema, value: unknown): Mistake | undefined {
  return Errors(schema, value)[0] as Mistake | undefined;
}
