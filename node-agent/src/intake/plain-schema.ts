/** A client's JSON Schema as an engine gets it. Nothing in it may make an engine fetch anything. */
import { invalid } from "@weiche/shared/errors.ts";
import { referenceWords, shownName } from "./schema-alternatives.ts";

/**
 * A copy, whose members are anybody's: all but the one that means something to JavaScript. A reference that leaves the schema
 * is refused, with its path.
 */
export function plainSchema(value: unknown, at: string): unknown {
  if (Array.isArray(value)) return value.map((item, index) => plainSchema(item, `${at}[${index}]`));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([name]) => name !== "__proto__");
  return Object.fromEntries(
    members.map(([name, member]) => {
      const memberAt = `${at}.${shownName(name)}`;
      if (referenceWords.includes(name) && typeof member === "string" && !member.startsWith("#"))
        throw invalid(memberAt, "must be a reference within the schema (#…); others are not fetched");
      return [name, plainSchema(member, memberAt)];
    }),
  );
}
