/** Converts query parameters, which arrive as text, to the types of their schema. */
import type { TObject } from "typebox";
import { readInstantText } from "../../db/calendar-text.ts";
import { malformed } from "./error-answers.ts";

/**
 * Converts well-formed integers and booleans. Throws for a NUL, which the database cannot store.
 */
export function readQuery(schema: TObject | undefined, query: Readonly<Record<string, unknown>>): object {
  const kinds = (schema?.properties ?? {}) as Readonly<Record<string, { readonly type?: string }>>;
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const type = Object.hasOwn(kinds, name) ? kinds[name]!.type : undefined;
      if (typeof value === "string" && value.includes("\0")) throw malformed(name.slice(0, 40));
      if (type === "integer" && typeof value === "string" && /^-?(0|[1-9]\d{0,14})$/.test(value))
        return [name, Number(value)];
      if (type === "boolean" && (value === "true" || value === "false")) return [name, value === "true"];
      return [name, value];
    }),
  );
}

/** Returns the milliseconds of an instant. Throws if the calendar or the database does not know it. */
export function readInstant(text: string, param: string): number {
  const ms = readInstantText(text);
  if (ms === undefined) throw malformed(param);
  return ms;
}
