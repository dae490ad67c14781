/** JSON Schemas that are small to send, and costly to convert to a grammar or to generate an answer with. */

export interface CostlySchema {
  readonly name: string;
  readonly schema: object;
  /** The path that llama-server's limits refuse. If undefined, the schema itself. */
  readonly path?: string;
}

function names(count: number, prefix = "p"): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

function object(properties: object, required: readonly string[] = Object.keys(properties)): object {
  return { type: "object", properties, required, additionalProperties: false };
}

function each(keys: readonly string[], schema: (index: number) => object): Record<string, object> {
  return Object.fromEntries(keys.map((key, index) => [key, schema(index)]));
}

/** An object with this many required properties, all with this schema. */
export function record(count: number, property: object): object {
  return object(each(names(count), () => property));
}

function chain(length: number, link: (next: object) => object, last: object): object {
  const at = (index: number) => ({ $ref: `#/$defs/d${index}` });
  const links = each(names(length, "d"), (index) => link(at(index + 1)));
  return { $defs: { ...links, [`d${length}`]: last }, ...at(0) };
}

function nested(levels: number, around: (inner: object) => object, innermost: object): object {
  return levels === 0 ? innermost : around(nested(levels - 1, around, innermost));
}

const patterns: readonly string[] = [
  "^((a{0,50}){0,50}){0,50}$",
  "^(a?){1500}$",
  "^(.{0,100}){0,100}$",
  "^(a+)+$",
  // One more way for each further character. Tokens of indentation and of dashes are long.
  "^(-|--)*$",
  "^( | {2})*;$",
  `^${".*".repeat(50)}$`,
  `^${"a?".repeat(40)}${"a".repeat(40)}$`,
  `^${"(".repeat(200)}a${")".repeat(200)}$`,
  "^(a{1,200}){1,200}$",
  `^${String.raw`\.`.repeat(2_000)}{2000}$`,
];

const itself = { $ref: "#/$defs/a" };
const recursive = { $defs: { a: { anyOf: [object({ x: itself }), object({ x: itself })] } }, ...itself };

export const costlySchemas: readonly CostlySchema[] = [
  ...patterns.map((pattern) => ({
    name: `the pattern ${pattern.slice(0, 30)}`,
    schema: { type: "string", pattern },
    path: "pattern",
  })),
  {
    name: "3,000 optional properties",
    schema: object(
      each(names(3_000), () => ({ type: "string" })),
      [],
    ),
  },
  {
    name: "20,000 values of an enum",
    schema: { enum: Array.from({ length: 20_000 }, (_, at) => `${chars(at)}value`) },
  },
  {
    name: "5,000 characters in an enum",
    schema: { enum: Array.from({ length: 5_000 }, (_, at) => String.fromCodePoint(0x4e00 + at)) },
  },
  {
    name: "3,000 references to the schema itself",
    schema: { allOf: Array.from({ length: 3_000 }, () => ({ $ref: "#" })) },
  },
  {
    name: "a hundred strings that are counted up to 2,000",
    schema: record(120, { type: "string", maxLength: 2_000 }),
  },
  {
    name: "thirty unions of two",
    schema: chain(30, (next) => ({ anyOf: [next, next] }), { const: "a" }),
    path: "$defs.d30",
  },
  {
    name: "twenty levels of an object with two alternatives",
    schema: nested(20, (inner) => ({ type: ["object", "object"], properties: { a: inner }, required: ["a"] }), {}),
    path: Array.from({ length: 18 }, () => "properties.a").join("."),
  },
  { name: "a union that contains itself in two ways", schema: recursive, path: "$defs.a.anyOf[1]" },
  {
    name: "an allOf that contains itself",
    schema: { $defs: { a: object({ next: { allOf: [itself] } }, []) }, ...itself },
    path: "$defs.a.properties.next",
  },
  { name: "a reference that leads to itself", schema: { $defs: { a: itself }, allOf: [itself] }, path: "$defs.a" },
  {
    name: "allOf of allOf",
    schema: chain(20, (next) => ({ allOf: [next, next] }), object({ a: { type: "string" } })),
    path: "$defs.d19",
  },
  {
    name: "a chain of 1,000 references",
    schema: chain(1_000, (next) => object({ a: next }), {}),
    path: "$defs.d50",
  },
  {
    name: "1,000 different references",
    schema: {
      $defs: each(names(1_000), () => object({ a: { type: "string" } })),
      ...object(each(names(1_000), (at) => ({ $ref: `#/$defs/p${at}` }))),
    },
  },
  { name: "a name of 30,000 characters", schema: object({ ["a".repeat(30_000)]: {} }), path: "properties" },
  {
    name: "2,000 names that are equal to llama.cpp",
    schema: object(
      each(
        Array.from({ length: 2_000 }, (_, at) => String.fromCodePoint(0x4e00 + at)),
        () => ({ type: "string" }),
      ),
    ),
    path: "properties",
  },
  {
    name: "1,100 objects that differ in their last property",
    schema: { anyOf: names(1_100).map((name) => object({ a: { type: "string" }, [name]: {} })) },
    path: "anyOf[48]",
  },
];

/** Different beginnings, of which there are many. */
function chars(index: number): string {
  return String.fromCodePoint(0x4e00 + (index % 2_000), 0x4e00 + Math.floor(index / 2_000));
}
