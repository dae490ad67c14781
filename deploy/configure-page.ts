/**
 * Makes the tables in CONFIGURE.md: the keys of the three files, from their schemas, and the variables.
 * `node deploy/configure-page.ts` writes them between their marks. The text around them is written by hand.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TSchema } from "typebox";
import { agentSchema } from "../node-agent/src/config/config-schema.ts";
import { routerSchema } from "../router/src/config/config-schema.ts";
import { catalogueSchema } from "@weiche/shared/catalogue-schema.ts";
import { table, withMade } from "./made-parts.ts";
import { variables } from "./variables.ts";

export const configureFile = join(import.meta.dirname, "CONFIGURE.md");

export const schemas = {
  "router.yaml": routerSchema,
  "agent.yaml": agentSchema,
  "catalogue.yaml": catalogueSchema,
} as const satisfies Record<string, TSchema>;

/**
 * The keywords of JSON Schema that these three schemas use. `absent` describes in words what applies if the key is
 * missing.
 */
interface Schema {
  readonly type?: "array" | "object" | "integer" | "number" | "boolean" | "string";
  readonly enum?: readonly (string | number)[];
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly description?: string;
  readonly default?: Default;
  readonly absent?: string;
}

type Default = string | number | boolean | readonly unknown[] | Readonly<Record<string, unknown>>;

interface Key {
  /** The key's path from the top of the file, such as `slots[].engines[].model`. */
  readonly path: string;
  readonly isRequired: boolean;
  readonly schema: Schema;
}

/** Lists every key of a file in the order of its schema, and a section before its keys. */
export function keysOf(schema: TSchema): readonly Key[] {
  return [...walk(schema as Schema, "")];
}

/** Returns whether the key has keys of its own, as a section or a list of sections. */
export function isSection({ schema }: Key): boolean {
  return (schema.items ?? schema).properties !== undefined;
}

function* walk({ properties = {}, required = [] }: Schema, above: string): Generator<Key> {
  for (const [name, schema] of Object.entries(properties)) {
    const path = `${above}${name}`;
    yield { path, isRequired: required.includes(name), schema };
    yield* schema.items ? walk(schema.items, `${path}[].`) : walk(schema, `${path}.`);
  }
}

/** Returns the page with fresh tables. Throws if a table has no place in it. */
export function configurePage(page: string): string {
  const tables = Object.entries(schemas).map(([file, schema]) => [file, tableOf(keysOf(schema))] as const);
  return withMade(page, Object.fromEntries([...tables, ["variables", tableOfVariables()]]), "deploy/configure-page.ts");
}

/** Makes a row. A section without a description has none, because its keys explain it. */
function tableOf(keys: readonly Key[]): string {
  const rows = keys
    .filter(({ schema }) => schema.description !== undefined)
    .map((key) => [`\`${key.path}\``, key.schema.description!, valueOf(key.schema), whenAbsent(key)]);
  return table(["key", "meaning", "value", "when absent"], rows);
}

function tableOfVariables(): string {
  const rows = Object.entries(variables).map(([name, { meaning, absent = "" }]) => [`\`${name}\``, meaning, absent]);
  return table(["variable", "meaning", "when absent"], rows);
}

function whenAbsent({ isRequired, schema }: Key): string {
  if (isRequired) return "*required*";
  return schema.absent ?? (schema.default === undefined ? "" : inWords(schema.default));
}

function inWords(value: Default): string {
  if (Array.isArray(value))
    return value.length === 0 ? "none" : value.map((each) => inWords(each as Default)).join(", ");
  if (typeof value !== "object") return typeof value === "number" ? String(value) : `\`${value}\``;
  return Object.entries(value)
    .map(([key, each]) => `${key} ${inWords(each as Default)}`)
    .join(", ");
}

function valueOf({ type = "string", enum: words, anyOf, items, properties, ...range }: Schema): string {
  if (words) return words.map((word) => `\`${word}\``).join(", ");
  if (anyOf) return anyOf.map((each) => valueOf(each)).join(" or ");
  if (properties) return "section";
  switch (type) {
    case "array":
      return items!.properties ? "list of sections" : `list: ${valueOf(items!)}`;
    case "object":
      return "names with texts";
    case "integer":
    case "number":
      return `${type}${bounds(range)}`;
    case "boolean":
      return "`true`, `false`";
    case "string":
      return "text";
  }
}

function bounds({ minimum, maximum }: Pick<Schema, "minimum" | "maximum">): string {
  return `${minimum === undefined ? "" : ` from ${minimum}`}${maximum === undefined ? "" : ` to ${maximum}`}`;
}

if (import.meta.main) writeFileSync(configureFile, configurePage(readFileSync(configureFile, "utf8")));
