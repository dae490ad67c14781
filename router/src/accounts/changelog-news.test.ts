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

/** The English texts that are news in each of these changelogs, one after the other. */
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
    ["two entries of one time and model are two", [[a, { ...a, text: b.text }]], [["A", "B"]]],
    ["the same entry twice is one", [[a, { ...a }]], [["A"]]],
    ["an entry of the service as a whole is on the page only", [[entry(1, "Closed for an hour")]], [[]]],
    ["other words in its place are no news", [[a], [{ ...a, text: { de: "Ä", en: "A!" } }]], [["A"], []]],
    ["another time is", [[a], [{ ...a, atMs: a.atMs + dayMs }]], [["A"], ["A"]]],
    ["another model is", [[a], [{ ...a, models: b.models }]], [["A"], ["A"]]],
    ["models in another order are not", [[b], [{ ...b, models: b.models.toReversed() }]], [["B"], []]],
    ["an entry beside one that stays is no rewording", [[a], [a, { ...a, text: b.text }]], [["A"], ["B"]]],
    ["what was removed and comes back is none", [[a], [], [a]], [["A"], [], []]],
    ["what is older than 30 days is history", [[entry(-31, "Old", "m"), entry(-29, "Late", "m")]], [["Late"]]],
  ])("%s", (_name, changelogs, expected) => {
    expect(newsOfEach(...changelogs)).toEqual(expected);
  });
});
