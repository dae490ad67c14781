/**
 * News of the catalogue: a model whose status changed, or whose factor changes now or later. What accounts were last told
 * of is in the database, so that neither a restart nor a second router tells it again.
 */
import { sql } from "kysely";
import { factorAt, type Catalogue, type CatalogueEntry, type ModelStatus } from "@weiche/shared/catalogue.ts";
import { formatCredits, millicredits } from "@weiche/shared/credits.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { inTransaction, instantText, type Database } from "../db/database.ts";

/** A model as accounts know it. */
export type AnnouncedModel = Pick<CatalogueEntry, "status" | "factors">;

export type CatalogueNews =
  /** null: not in the catalogue. */
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
        /** What was announced before is replaced by this. */
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

/** The factor of now, and those to come. */
export function scheduleOf({ factors }: Pick<CatalogueEntry, "factors">, nowMs: number) {
  return {
    factor: formatCredits(factorAt({ factors } as CatalogueEntry, nowMs)),
    coming: factors
      .filter(({ validFromMs }) => validFromMs > nowMs)
      .map(({ validFromMs, factor }) => ({ validFrom: instantText(validFromMs), factor: formatCredits(factor) })),
  };
}

/** Tells every account what has changed since the last time; returns how many notices that made. The first time: none. */
export async function announceCatalogue(database: Database, catalogue: Catalogue, nowMs: number): Promise<number> {
  return inTransaction(database, async (transaction) => {
    await sql`lock table announced_models in exclusive mode`.execute(transaction);
    const rows = await transaction.selectFrom("announcedModels").selectAll().execute();
    const before = new Map(rows.map((row) => [row.model, row]));
    let added = 0;
    for (const model of new Set([...before.keys(), ...catalogue.keys()])) {
      const [row, entry] = [before.get(model), catalogue.get(asId<ModelId>(model))];
      const known = row?.status ? { status: row.status, factors: readFactors(row.factors) } : undefined;
      const news = newsOf(asId<ModelId>(model), known, entry, nowMs);
      if (row && news.length === 0) continue;
      const version = (row?.version ?? 0n) + 1n;
      // A model that is gone stays with its version, so that its return is told again.
      const state = { status: entry?.status ?? null, factors: JSON.stringify(writeFactors(entry)), version };
      await transaction
        .insertInto("announcedModels")
        .values({ model, ...state })
        .onConflict((conflict) => conflict.column("model").doUpdateSet(state))
        .execute();
      if (rows.length === 0) continue;
      for (const { kind, facts } of news) added += await tellEverybody(kind, `${model} ${version}`, facts);
    }
    return added;

    async function tellEverybody(kind: CatalogueNews["kind"], event: string, facts: object): Promise<number> {
      const { numAffectedRows } = await sql`
        insert into notices (account_id, kind, event, facts, created_at)
        select id, ${kind}, ${event}, ${JSON.stringify(facts)}::jsonb, ${instantText(nowMs)} from accounts
        on conflict do nothing`.execute(transaction);
      return Number(numAffectedRows ?? 0n);
    }
  });
}

type StoredFactors = readonly (readonly [validFromMs: number, millicredits: string])[];

function writeFactors(entry: CatalogueEntry | undefined): StoredFactors {
  return (entry?.factors ?? []).map(({ validFromMs, factor }) => [validFromMs, factor.toString()]);
}

function readFactors(stored: StoredFactors): CatalogueEntry["factors"] {
  return stored.map(([validFromMs, factor]) => ({ validFromMs, factor: millicredits(BigInt(factor)) }));
}
