import { expect, test } from "vitest";
import { stringify } from "yaml";
import { parseCatalogue } from "./catalogue.ts";

const models = [
  {
    ...{ id: "m", category: "language", status: "Beta", contextTokens: 100 },
    factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }],
  },
];
const text = { de: "Neu", en: "New" };
const change = { at: "2026-12-01T00:00:00+01:00", text };
const read = (...changes: readonly object[]) => parseCatalogue(stringify({ models, changes }));

test("changes are sorted newest first, and may be about removed models", () => {
  const { changes } = read(
    { ...change, models: ["m", "gone-7b"] },
    { at: "2027-01-01T00:00:00Z", text: { de: " Später \n", en: "Later" } },
  );
  expect(changes).toEqual([
    { atMs: Date.parse("2027-01-01T00:00:00Z"), text: { de: "Später", en: "Later" }, models: [] },
    { atMs: Date.parse("2026-11-30T23:00:00Z"), text, models: ["m", "gone-7b"] },
  ]);
});

test("a catalogue without changes has none", () => {
  expect(parseCatalogue(stringify({ models })).changes).toEqual([]);
  expect(parseCatalogue(stringify(models)).changes).toEqual([]);
});

const mistakes: [name: string, change: object, message: RegExp][] = [
  ["a day without a time", { ...change, at: "2026-12-01" }, /"2026-12-01" is not an instant such as 2026-12-01T00:00/],
  ["a time without an offset", { ...change, at: "2026-12-01T00:00:00" }, /is not an instant/],
  ["a day that does not exist", { ...change, at: "2026-02-30T00:00:00Z" }, /is not an instant/],
  ["a text without one language", { ...change, text: { de: "Neu" } }, /changes.*text.*en/],
  ["an empty text", { ...change, text: { ...text, en: "" } }, /en/],
  ["a blank text", { ...change, text: { ...text, de: "  " } }, /must not be empty/],
  ["an unknown key", { ...change, model: "m" }, /did you mean "models"/],
  ["a third language", { ...change, text: { ...text, fr: "Nouveau" } }, /fr/],
  ["a malformed model name", { ...change, models: ["a b"] }, /models/],
];
test.each(mistakes)("%s refuses the whole catalogue and names its line", (_name, wrong, message) => {
  const result = read(wrong);
  expect(result.catalogue).toBeUndefined();
  expect(result.mistakes.map((mistake) => mistake.message).join()).toMatch(message);
  expect(result.mistakes[0]!.line).toBeGreaterThan(8);
});

test("more changes than the portal shows at once are refused", () => {
  expect(read(...Array.from({ length: 501 }, () => structuredClone(change))).mistakes[0]!.message).toMatch(/changes/);
});
