import { expect, test } from "vitest";
import { de } from "./de.ts";
import { en } from "./en.ts";
import type { Shape } from "./shape.ts";

/** Names of all texts, such as keys.create. */
function namesOf(texts: object, path = ""): string[] {
  return Object.entries(texts).flatMap(([name, text]) =>
    typeof text === "object" && text !== null ? namesOf(text as object, `${path}${name}.`) : [`${path}${name}`],
  );
}

test("both languages have the same texts", () => {
  expect(namesOf(de).toSorted()).toEqual(namesOf(en).toSorted());
});

test("a text that one language lacks, or that takes other values, is a type error", () => {
  const { lead: _lead, ...rest } = de.notices;
  // @ts-expect-error: the text is missing
  const lacking: Shape<typeof en.notices> = rest;
  // @ts-expect-error: a number is no text
  const other: Shape<typeof en.notices> = { ...de.notices, lead: (unread: number) => String(unread) };
  expect([lacking, other]).toHaveLength(2);
});
