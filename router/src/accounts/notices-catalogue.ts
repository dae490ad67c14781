/**
 * Notices about the catalogue: a model's status changed, its factor changes now or later, or the changelog has a new
 * entry about it. The database stores announced changes, so that no restart and no second router announces them again.
 */
import { sql, type Transaction } from "kysely";
import { factorAt, type Catalogue, type CatalogueEntry, type ModelStatus } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { formatCredits, millicredits } from "@weiche/shared/credits.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import type { CatalogueFile } from "../config/config.ts";
import { inTransaction, instantText, type Database } from "../db/database.ts";
import type { NoticeKind, Schema } from "../db/schema.ts";
import { changelogNews, eventOf } from "./changelog-news.ts";

/** The fields of a model that accounts get notices about. */
export type AnnouncedModel = Pick<CatalogueEntry, "status" | "factors">;

type CatalogueNews =
  /** `from`, `to`: null if the model is not in the catalogue. */
  | {
      readonly kind: "model-status";
      readonly facts: { readonly model: ModelId; readonly from: ModelStatus | null; readonly to: ModelStatus | null };
    }
  | {
      readonly kind: "model-factor";
      readonly facts: {
        readonly model: ModelId;
        readonly from: string;
        readonly to: string;
        /** Replaces all future factors announced before. */
        readonly coming: readonly { readonly validFrom: string; readonly factor: string }[];
      };
    };

export function newsOf(
  model: ModelId,
  before: AnnouncedModel | undefined,
  after: AnnouncedModel | undefined,
  nowMs: number,
): readonly CatalogueNews[] {
  const news: CatalogueNews[] = [];
  const [from, to] = [before?.status ?? null, after?.status ?? null];
  if (from !== to) news.push({ kind: "model-status", facts: { model, from, to } });
  if (!before || !after) return news;
  const [old, now] = [scheduleOf(before, nowMs), scheduleOf(after, nowMs)];
  if (JSON.stringify(old) !== JSON.stringify(now))
    news.push({ kind: "model-factor", facts: { model, from: old.factor, to: now.factor, coming: now.coming } });
  return news;
}

/** Returns the current factor and the future ones. */
export function scheduleOf({ factors }: Pick<CatalogueEntry, "factors">, nowMs: number) {
  return {
    factor: formatCredits(factorAt({ factors }, nowMs)),
    coming: factors
      .filter(({ validFromMs }) => validFromMs > nowMs)
      .map(({ validFromMs, factor }) => ({ validFrom: instantText(validFromMs), factor: formatCredits(factor) })),
  };
}

/** Adds a notice for every account about each change since the last call. Returns their number; 0 at the first call. */
export async function announceCatalogue(
  database: Database,
  { catalogue, changes }: Pick<CatalogueFile, "catalogue" | "changes">,
  nowMs: number,
): Promise<number> {
  return inTransaction(database, async (transaction) => {
    // Held until the commit, so that two routers do not announce the same change.
    await sql`lock table announced_models in exclusive mode`.execute(transaction);
    const models = await newsOfModels(transaction, catalogue, nowMs);
    const entries = await newsOfChangelog(transaction, changes, nowMs);
    let added = 0;
    const tellEverybody = async (kind: NoticeKind, event: string, facts: object) => {
      const { numAffectedRows } = await sql`
        insert into notices (account_id, kind, event, facts, created_at)
        select id, ${kind}, ${event}, ${JSON.stringify(facts)}::jsonb, ${instantText(nowMs)} from accounts
        where deleted_at is null
        on conflict do nothing`.execute(transaction);
      added += Number(numAffectedRows ?? 0n);
    };
    for (const entry of entries) {
      // One notice holds the operator's text and all changes of these models.
      const news = entry.models.flatMap((model) => models.get(model)?.news ?? []);
      for (const model of entry.models) models.delete(model);
      const { atMs, text, models: names } = entry;
      await tellEverybody("model-change", eventOf(entry), { at: instantText(atMs), text, models: names, news });
    }
    for (const { event, news } of models.values())
      for (const { kind, facts } of news) await tellEverybody(kind, event, facts);
    return added;
  });
}

/** Returns the news by model and stores the catalogue. The first catalogue ever is not news. */
async function newsOfModels(transaction: Transaction<Schema>, catalogue: Catalogue, nowMs: number) {
  const found = new Map<ModelId, { readonly event: string; readonly news: readonly CatalogueNews[] }>();
  const rows = await transaction.selectFrom("announcedModels").selectAll().execute();
  const before = new Map(rows.map((row) => [asId<ModelId>(row.model), row]));
  for (const model of new Set([...before.keys(), ...catalogue.keys()])) {
    const [row, entry] = [before.get(model), catalogue.get(model)];
    const known = row?.status ? { status: row.status, factors: readFactors(row.factors) } : undefined;
    const news = newsOf(model, known, entry, nowMs);
    if (row && news.length === 0) continue;
    const version = (row?.version ?? 0n) + 1n;
    // A removed model keeps its row and version, so that its return gets an event of its own.
    const state = { status: entry?.status ?? null, factors: JSON.stringify(writeFactors(entry)), version };
    await transaction
      .insertInto("announcedModels")
      .values({ model, ...state })
      .onConflict((conflict) => conflict.column("model").doUpdateSet(state))
      .execute();
    if (rows.length > 0) found.set(model, { event: `${model} ${version}`, news });
  }
  return found;
}

/** Returns the new entries and stores them. The first changelog ever is not news. */
async function newsOfChangelog(transaction: Transaction<Schema>, changes: readonly ServiceChange[], nowMs: number) {
  const row = await transaction.selectFrom("announcedChanges").select("told").executeTakeFirst();
  const { news, told } = changelogNews(row?.told ?? [], changes, nowMs);
  const state = { told: JSON.stringify(told) };
  if (!row) await transaction.insertInto("announcedChanges").values(state).execute();
  else if (state.told !== JSON.stringify(row.told))
    await transaction.updateTable("announcedChanges").set(state).execute();
  return row ? news : [];
}

type StoredFactors = readonly (readonly [validFromMs: number, millicredits: string])[];

function writeFactors(entry: CatalogueEntry | undefined): StoredFactors {
  return (entry?.factors ?? []).map(({ validFromMs, factor }) => [validFromMs, factor.toString()]);
}

function readFactors(stored: StoredFactors): CatalogueEntry["factors"] {
  return stored.map(([validFromMs, factor]) => ({ validFromMs, factor: millicredits(BigInt(factor)) }));
}
