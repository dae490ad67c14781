/** Commits a batch of usage records and adds them to all sums in one statement. */
import type { Pool } from "pg";
import { millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import { arrays, creditsByModel, movedSums, names, rowsOf, type CreditsTexts, type NodeRecord } from "./usage-rows.ts";
import { commitVoids, splitVoids } from "./usage-voids.ts";

export interface Committed {
  /** New records. */
  readonly inserted: number;
  /** Attempts that were billed before and are void now. */
  readonly voided: number;
  /** Credits of new records, by model. */
  readonly credits: CreditsByModel;
  /** Credits of attempts that became void, by model. */
  readonly voidedCredits: CreditsByModel;
}

export type CreditsByModel = ReadonlyMap<string, Millicredits>;

/** Records must be well-formed, and the partitions of their days must exist. Voids are committed first, separately. */
export async function commitUsage(pool: Pool, batch: readonly NodeRecord[]): Promise<Committed> {
  const { records, voids } = splitVoids(batch);
  const taken = voids.length > 0 ? await commitVoids(pool, voids) : { voided: 0, credits: {} };
  const back = { voided: taken.voided, voidedCredits: byModel(taken.credits) };
  if (records.length === 0) return { inserted: 0, credits: new Map(), ...back };
  const values = await rowsOf(pool, records);
  const { rows } = await pool.query<CommitRow>({ name: "commit-usage", text: commitSql, values });
  const { inserted, credits } = rows[0]!;
  return { inserted, credits: byModel(credits), ...back };
}

interface CommitRow {
  readonly inserted: number;
  readonly credits: CreditsTexts;
}

function byModel(credits: CreditsTexts): CreditsByModel {
  return new Map(Object.entries(credits).map(([model, sum]) => [model, millicredits(BigInt(sum))]));
}

/** SQL for the time in a UUIDv7. */
function acceptedAt(id: string): string {
  return `to_timestamp(('x' || translate(left(${id}, 13), '-', ''))::bit(48)::bigint / 1000.0)`;
}

/** A repeated record changes nothing. Sums are locked in the order of their keys against deadlocks. */
const commitSql = `
  with inserted as (
    insert into usage_records (${names})
    select * from unnest(${arrays})
    on conflict do nothing
    returning *
  ), costing as (
    select *, 1 as requests from inserted where outcome <> 'broken'
  ), ${movedSums("costing", "+")}, uses as (
    insert into key_uses as u (key_id, last_used_at)
    select key_id, ${acceptedAt("max(request_id::text)")} from inserted
    group by key_id
    having not exists (select from key_uses k where k.key_id = inserted.key_id
      and k.last_used_at > ${acceptedAt("max(request_id::text)")} - interval '1 minute')
    order by key_id
    on conflict (key_id) do update set last_used_at = greatest(u.last_used_at, excluded.last_used_at)
  )
  select (select count(*) from inserted)::integer as inserted, (${creditsByModel("costing")}) as credits`;
