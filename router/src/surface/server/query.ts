/** Reads query parameters, which arrive as text, by the types of their schema. */
import type { TObject } from "typebox";
import { readInstantText } from "../../db/calendar-text.ts";
import { malformed } from "./error-answers.ts";

/**
 * Converts values that the schema calls integer or boolean, if they are written like one. Throws for a NUL, which the
 * database cannot store.
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

/** Milliseconds of a well-formed instant that the calendar and the database have, too. */
export function readInstant(text: string, param: string): number {
  const ms = readInstantText(text);
  if (ms === undefined) throw malformed(param);
  return ms;
}
