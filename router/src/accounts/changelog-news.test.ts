import { describe, expect, test } from "vitest";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { changelogNews } from "./changelog-news.ts";

const dayMs = 86_400_000;
const nowMs = Date.parse("2026-11-20T12:00:00Z");

function entry(days: number, en: string, ...models: string[]): ServiceChange {
  const text = { de: `${en} (deutsch)`, en };
  return { atMs: nowMs + days * dayMs, text, models: models.map((model) => asId<ModelId>(model)) };
}

/** Reads the changelogs one after the other and returns the English texts that are news in each. */
function newsOfEach(...changelogs: readonly (readonly ServiceChange[])[]): string[][] {
  let told: Parameters<typeof changelogNews>[0] = [];
  return changelogs.map((changes) => {
    const now = changelogNews(told, changes, nowMs);
    told = now.told;
    return now.news.map(({ text }) => text.en);
  });
}

const [a, b] = [entry(1, "A", "m"), entry(2, "B", "m", "n")];

describe("news of the changelog", () => {
  test.each([
    ["an entry is news once", [[a], [a, b], [a, b]], [["A"], ["B"], []]],
    ["two entries of the same time and model are both news", [[a, { ...a, text: b.text }]], [["A", "B"]]],
    ["an entry that is listed twice is news once", [[a, { ...a }]], [["A"]]],
    ["an entry that names no model is never news", [[entry(1, "Closed for an hour")]], [[]]],
    ["a reworded entry is not news", [[a], [{ ...a, text: { de: "Ä", en: "A!" } }]], [["A"], []]],
    ["an entry with a new time is news", [[a], [{ ...a, atMs: a.atMs + dayMs }]], [["A"], ["A"]]],
    ["an entry with another model is news", [[a], [{ ...a, models: b.models }]], [["A"], ["A"]]],
    [
      "an entry with its models in another order is not news",
      [[b], [{ ...b, models: b.models.toReversed() }]],
      [["B"], []],
    ],
    [
      "a second entry of the same time and model is news while the first stays",
      [[a], [a, { ...a, text: b.text }]],
      [["A"], ["B"]],
    ],
    ["an entry that is removed and returns is not news", [[a], [], [a]], [["A"], [], []]],
    ["an entry older than 30 days is not news", [[entry(-31, "Old", "m"), entry(-29, "Late", "m")]], [["Late"]]],
  ])("%s [H8]", (_name, changelogs, expected) => {
    expect(newsOfEach(...changelogs)).toEqual(expected);
  });
});
