/** Reads query parameters, which arrive as text, by the types of their schema. */
import type { TObject } from "typebox";
import { readInstantText } from "../../db/calendar-text.ts";
import { malformed } from "./refusal.ts";

/**
 * What the schema calls a number or a boolean is read as one where it is written like one. No text of ours has a NUL, and
 * the database could not hold one.
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
