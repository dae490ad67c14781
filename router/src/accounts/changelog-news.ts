/** Decides which entries of the catalogue's changelog are news to accounts. Pure. */
import { createHash } from "node:crypto";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { instantText } from "../db/database.ts";

/** A remembered entry. `models`: sorted names, joined by spaces. `hash`: the hash of the texts in both languages. */
type ToldChange = readonly [at: string, models: string, hash: string];

/** Accounts get no notice of an entry that is older than this when it is first seen. The page Changelog still shows it. */
const historyMs = 30 * 86_400_000;

/**
 * `news`: entries about models that have not been announced, in the order of `changes`. A reworded entry is not news: it
 * replaces an announced entry with the same time and the same models.
 * `told`: the entries to remember. A removed entry stays in it, so that its return is not news either.
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

/** Returns an identifier of the entry, 43 characters long. */
export function eventOf(change: ServiceChange): string {
  return hashOf(toldChange(change));
}

function toldChange({ atMs, models, text: { de, en } }: ServiceChange): ToldChange {
  return [instantText(atMs), models.toSorted().join(" "), hashOf([de, en])];
}

function hashOf(words: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(words)).digest("base64url");
}
