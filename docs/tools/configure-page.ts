/**
 * Makes the lists in configuration.md: the keys of each section of the three files, from their schemas, and the variables.
 * `node docs/tools/configure-page.ts` writes them between their marks. Texts and examples around them are written by hand.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TSchema } from "typebox";
import { agentSchema } from "../../node-agent/src/config/config-schema.ts";
import { routerSchema } from "../../router/src/config/config-schema.ts";
import { catalogueSchema } from "@weiche/shared/catalogue-schema.ts";
import { list, withMade } from "./made-parts.ts";
import { variables } from "./variables.ts";

export const configureFile = join(import.meta.dirname, "../configuration.md");

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
    yield { path, isRequired: required.includes(name) && schema.default === undefined, schema };
    yield* schema.items ? walk(schema.items, `${path}[].`) : walk(schema, `${path}.`);
  }
}

/** Sections below other sections that have a heading of their own. */
const innerSections = ["slots[].engines[]", "models[].reasoning", "models[].embeddings"];
/** The name of the section with the keys that are in no other section. */
export const topSection = "at the top";

/** Lists the sections of a file with their keys, in the order of its schema. */
export function sectionsOf(schema: TSchema): ReadonlyMap<string, readonly Key[]> {
  const keys = keysOf(schema);
  const sections = [...keys.filter((key) => isSection(key) && !key.path.includes(".")).map(pathOf), ...innerSections];
  const sectionOf = (key: Key) =>
    sections.findLast((section) => pathOf(key) === section || key.path.startsWith(`${section}.`)) ?? topSection;
  return Map.groupBy(keys, sectionOf);
}

/** Returns a key's path, with the mark of a list if it is a list of sections. */
function pathOf(key: Key): string {
  return key.schema.items && isSection(key) ? `${key.path}[]` : key.path;
}

/** Returns the page with fresh lists. Throws if a section has no place in it. */
export function configurePage(page: string): string {
  const lists = Object.entries(schemas).flatMap(([file, schema]) =>
    [...sectionsOf(schema)].map(([section, keys]) => [`${file} ${section}`, listOf(keys)] as const),
  );
  const parts = Object.fromEntries([...lists, ["variables", listOfVariables()]]);
  return withMade(page, parts, "docs/tools/configure-page.ts");
}

/** Makes the list of keys. A section without a description has no line, because its keys explain it. */
function listOf(keys: readonly Key[]): string {
  const described = keys.filter(({ schema }) => schema.description !== undefined);
  return list(
    described.map((key) => {
      const facts = [valueOf(key.schema), whenAbsent(key)].filter((fact) => fact !== "").join("; ");
      return `**\`${key.path}\`**: ${key.schema.description!}. *${facts}*`;
    }),
  );
}

function listOfVariables(): string {
  const lines = Object.entries(variables).map(([name, { meaning, absent }]) => {
    const otherwise = absent === undefined ? "" : ` *If unset: ${absent}*`;
    return `**\`${name}\`**: ${meaning}.${otherwise}`;
  });
  return list(lines);
}

function whenAbsent({ isRequired, schema }: Key): string {
  if (isRequired) return "required";
  if (schema.absent !== undefined) return `if unset: ${schema.absent}`;
  return schema.default === undefined ? "" : `default ${inWords(schema.default)}`;
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

function bounds({ minimum, maximum }: Schema): string {
  return `${minimum === undefined ? "" : ` from ${minimum}`}${maximum === undefined ? "" : ` to ${maximum}`}`;
}

if (import.meta.main) writeFileSync(configureFile, configurePage(readFileSync(configureFile, "utf8")));
