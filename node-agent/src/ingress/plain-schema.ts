/** A client's JSON Schema as an engine gets it. Nothing in it may make an engine fetch anything. */
import { refuse } from "./fields.ts";

/** What a schema may refer to others by. */
const references: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

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
      const memberAt = `${at}.${shown(name)}`;
      if (references.has(name) && typeof member === "string" && !member.startsWith("#"))
        return refuse(memberAt, "a reference within the schema (#…); others are not fetched");
      return [name, plainSchema(member, memberAt)];
    }),
  );
}

/** The name of a member as an error may say it: a plain word that is not long. */
function shown(name: string): string {
  return /^[\w$-]{1,40}$/.test(name) ? name : "*";
}
