/** Which entries of the catalogue's changelog are news to the accounts. Pure. */
import { createHash } from "node:crypto";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { instantText } from "../db/database.ts";

/** An entry that is remembered. `hash` is of its texts in both languages; `models` is a sorted list with spaces. */
export type ToldChange = readonly [at: string, models: string, hash: string];

/** An entry that is older than this when it is first seen is history: the page Changelog has it, nobody gets a notice. */
const historyMs = 30 * 86_400_000;

/**
 * `news`: entries that name models and were not told of, in the order of `changes`. An entry with other words in the place
 * of one that was told of, so at the same time and about the same models, is no news.
 * `told`: what is to be remembered now. An entry that is gone stays, so that its return is no news either.
 */
export function changelogNews(
  toldBefore: readonly ToldChange[],
  changes: readonly ServiceChange[],
  nowMs: number,
): { readonly news: readonly ServiceChange[]; readonly told: readonly ToldChange[] } {
  const told = new Map(toldBefore.map((one) => [one.join(), one]));
  const present = new Set(changes.map((change) => toldChange(change).join()));
  const news: ServiceChange[] = [];
  for (const change of changes) {
    const one = toldChange(change);
    if (told.has(one.join())) continue;
    const reworded = [...told].find(([key, [at, models]]) => at === one[0] && models === one[1] && !present.has(key));
    if (reworded) told.delete(reworded[0]);
    else if (change.models.length > 0 && change.atMs > nowMs - historyMs) news.push(change);
    told.set(one.join(), one);
  }
  return { news, told: [...told.values()] };
}

/** Identifies this entry among all others, in 43 characters. */
export function eventOf(change: ServiceChange): string {
  return hashOf(toldChange(change));
}

function toldChange({ atMs, models, text: { de, en } }: ServiceChange): ToldChange {
  return [instantText(atMs), models.toSorted().join(" "), hashOf([de, en])];
}

function hashOf(words: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(words)).digest("base64url");
}
