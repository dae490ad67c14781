import { memberOf } from "@weiche/shared/http/kept-json.ts";
import { shownName, type SchemaAt } from "./schema-alternatives.ts";

/**
 * Follows a JSON pointer within the document. Returns undefined if it has no target or is a name, which the engine
 * refuses.
 */
export function targetOf(document: SchemaAt, reference: string): SchemaAt | undefined {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let { schema, at } = document;
  for (const part of reference.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof schema !== "object" || schema === null) return undefined;
    schema = memberOf(schema, key);
    if (schema === undefined) return undefined;
    at += Array.isArray(schema) ? `[${shownName(key)}]` : `.${shownName(key)}`;
  }
  return { schema, at };
}
