import { invalid } from "@weiche/shared/errors.ts";
import { keptNumber, plainName, rawJson } from "@weiche/shared/http/kept-json.ts";
import { positionWithin, type SchemaPosition } from "../engines/dialects/schema-positions.ts";
import { referenceWords, shownName } from "./schema-alternatives.ts";

/**
 * Returns a client's JSON Schema for an engine: without `__proto__`, and without anything to fetch. Throws a 400 with
 * the path of a reference that leaves the schema. A `default` and other data may contain any `$ref`. A kept number
 * becomes raw JSON, and a kept name stays marked.
 */
export function plainSchema(value: unknown, at: string, position: SchemaPosition = "schema"): unknown {
  if (Array.isArray(value)) return value.map((item, index) => plainSchema(item, `${at}[${index}]`, position));
  const number = keptNumber(value);
  if (number !== undefined) return rawNumber(number, at);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([name]) => name !== "__proto__");
  return Object.fromEntries(
    members.map(([name, member]) => {
      const memberAt = `${at}.${shownName(plainName(name))}`;
      if (position === "schema" && leavesSchema(name, member))
        throw invalid(memberAt, "must be a reference within the schema (#…); others are not fetched");
      return [name, plainSchema(member, memberAt, positionWithin(position, name))];
    }),
  );
}

function leavesSchema(name: string, member: unknown): boolean {
  return referenceWords.includes(name) && typeof member === "string" && !member.startsWith("#");
}

function rawNumber(text: string, at: string): unknown {
  if (!Number.isFinite(Number(text)))
    throw invalid(at, "must be a number below 1.8e308, the largest that engines read");
  return rawJson(text);
}
