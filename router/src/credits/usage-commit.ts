/** Commits a batch of usage records and moves every sum that they belong to, in one statement. */
import type { Pool } from "pg";
import { arrays, names, rowsOf, type NodeRecord } from "./usage-rows.ts";
import { commitVoids, splitVoids } from "./usage-voids.ts";

export interface Committed {
  /** Records that were new. */
  readonly inserted: number;
  /** Attempts that had cost something and are void now. */
  readonly voided: number;
}

/** The records must be well-formed, and their days must exist. Void attempts are committed first, by themselves. */
export async function commitUsage(pool: Pool, batch: readonly NodeRecord[]): Promise<Committed> {
  const { records, voids } = splitVoids(batch);
  const voided = voids.length > 0 ? await commitVoids(pool, voids) : 0;
  if (records.length === 0) return { inserted: 0, voided };
  const values = await rowsOf(pool, records);
  const { rows } = await pool.query<{ inserted: number }>({ name: "commit-usage", text: commitSql, values });
  return { inserted: rows[0]!.inserted, voided };
}

const sums = `sum(requests) as requests, sum(prompt_tokens) as prompt_tokens,
  sum(completion_tokens) as completion_tokens, sum(credits) as credits`;
const add = ["requests", "prompt_tokens", "completion_tokens", "credits"]
  .map((name) => `${name} = t.${name} + excluded.${name}`)
  .join(", ");

/** The time in a UUIDv7. */
function acceptedAt(id: string): string {
  return `to_timestamp(('x' || translate(left(${id}, 13), '-', ''))::bit(48)::bigint / 1000.0)`;
}

/** A record that is there already returns nothing and moves nothing. Sums are taken in the order of their keys, too. */
const commitSql = `
  with inserted as (
    insert into usage_records (${names})
    select * from unnest(${arrays})
    on conflict do nothing
    returning *, case outcome when 'broken' then 0 else 1 end as requests
  ), totals as (
    insert into usage_totals as t (account_id, period_start, scope, subject, requests, prompt_tokens, completion_tokens, credits)
    select account_id, period_start, scope, subject, ${sums}
    from inserted
    cross join lateral (values ('account', ''), ('user', user_id::text), ('key', key_id::text), ('model', model)) s (scope, subject)
    where requests > 0
    group by account_id, period_start, scope, subject
    order by account_id, period_start, scope, subject
    on conflict (account_id, period_start, scope, subject) do update set ${add}
  ), days as (
    insert into usage_days as t (account_id, day, period_start, user_id, key_id, model, requests, prompt_tokens, completion_tokens, credits)
    select account_id, day, period_start, user_id, key_id, model, ${sums}
    from inserted
    where requests > 0
    group by account_id, day, period_start, user_id, key_id, model
    order by account_id, day, period_start, user_id, key_id, model
    on conflict (account_id, day, period_start, user_id, key_id, model) do update set ${add}
  ), uses as (
    insert into key_uses as u (key_id, last_used_at)
    select key_id, ${acceptedAt("max(request_id::text)")} from inserted
    group by key_id
    having not exists (select from key_uses k where k.key_id = inserted.key_id
      and k.last_used_at > ${acceptedAt("max(request_id::text)")} - interval '1 minute')
    order by key_id
    on conflict (key_id) do update set last_used_at = greatest(u.last_used_at, excluded.last_used_at)
  )
  select count(*)::integer as inserted from inserted`;
