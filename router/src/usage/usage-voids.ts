/**
 * Commits voids of attempts whose answers did not reach their clients. A void has the primary key of the attempt's record.
 * A later record changes nothing; an earlier one is subtracted from its sums in the same statement.
 */
import type { Pool } from "pg";
import { asId } from "@weiche/shared/ids.ts";
import type { Attempt } from "@weiche/shared/usage-record.ts";
import {
  arrays,
  creditsByModel,
  movedSums,
  names,
  rowsOf,
  summedColumns,
  type CreditsTexts,
  type NodeRecord,
} from "./usage-rows.ts";

interface Split {
  readonly records: readonly NodeRecord[];
  /** Without repetitions. */
  readonly voids: readonly NodeRecord[];
}

/**
 * Separates voids from records. A router asks a second node only after it gave up the first. So a record of attempt 2
 * makes attempt 1 void, even if the router died before it declared the void.
 */
export function splitVoids(batch: readonly NodeRecord[]): Split {
  if (batch.every(({ record }) => record.outcome !== "void" && record.attempt === 1))
    return { records: batch, voids: [] };
  const voids = new Map<string, NodeRecord>();
  for (const { node, record } of batch) {
    if (record.outcome === "void") voids.set(keyOf(record), { node, record });
    for (let attempt = 1; attempt < record.attempt; attempt++) {
      const earlier = { ...record, ...free, attempt };
      if (!voids.has(keyOf(earlier))) voids.set(keyOf(earlier), { node: unknownNode, record: earlier });
    }
  }
  return { records: batch.filter(({ record }) => !voids.has(keyOf(record))), voids: [...voids.values()] };
}

/** The field values of a void. */
export const free = {
  outcome: "void",
  promptTokens: 0,
  completionTokens: 0,
  source: "counted",
  durationMs: 0,
} as const;

/** A record of attempt 2 does not name the node of attempt 1. */
const unknownNode = asId<NodeRecord["node"]>("");

function keyOf({ requestId, attempt }: Attempt): string {
  return `${requestId} ${attempt}`;
}

interface CommittedVoids {
  /** How many of the attempts were billed before. */
  readonly voided: number;
  /** The credits that these attempts had cost, by model. */
  readonly credits: CreditsTexts;
}

export async function commitVoids(pool: Pool, voids: readonly NodeRecord[]): Promise<CommittedVoids> {
  const values = await rowsOf(pool, voids);
  const { rows } = await pool.query<CommittedVoids>({ name: "commit-voids", text: commitSql, values });
  return rows[0]!;
}

/**
 * `insert … on conflict` changes the sums, because it sees the current row. An `update` would miss a row that another
 * router inserted after this statement began, together with a record that this statement waited for. A voided record has
 * sums, so the insert always conflicts.
 */
const commitSql = `
  with declared as (
    insert into usage_records as r (${names})
    select * from unnest(${arrays})
    on conflict (request_id, attempt) do update set outcome = 'void',
      ${summedColumns.map((name) => `voided_${name} = r.${name}, ${name} = 0`).join(", ")}
    where r.outcome not in ('broken', 'void')
    returning *
  ), voided as (
    select account_id, period_start, day, user_id, key_id, model, 1 as requests,
      ${summedColumns.map((name) => `voided_${name} as ${name}`).join(", ")}
    from declared where voided_credits is not null
  ), ${movedSums("voided", "-")}
  select (select count(*) from voided)::integer as voided, (${creditsByModel("voided")}) as credits`;
