/** Commits a batch of usage records and moves every sum that they belong to, in one statement. */
import type { Pool } from "pg";
import { creditsOf } from "@weiche/shared/credits.ts";
import { uuidv7TimeMs, type NodeId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { germanDay, type BillingPeriod } from "../accounts/billing-period.ts";
import { periodIn } from "../accounts/subscription-rules.ts";
import { instantText } from "../db/database.ts";
import { measurement } from "./usage-check.ts";

export interface NodeRecord {
  readonly node: NodeId;
  readonly record: UsageRecord;
}

/** Returns how many of the records were new. Those must be well-formed, and their days must exist. */
export async function commitUsage(pool: Pool, batch: readonly NodeRecord[]): Promise<number> {
  const periods = await readPeriods(pool, new Set(batch.map(({ record }) => record.accountId)));
  // In the order of the primary key, so that two routers that insert the same records wait in turn and never crosswise.
  const sorted = batch.toSorted(({ record: a }, { record: b }) =>
    a.requestId < b.requestId ? -1 : a.requestId > b.requestId ? 1 : a.attempt - b.attempt,
  );
  const values = columns.map((column) => arrayText(column, sorted, periods));
  const { rows } = await pool.query<{ inserted: number }>({ name: "commit-usage", text: commitSql, values });
  return rows[0]!.inserted;
}

type Value = string | number | bigint | undefined;

/**
 * An array as PostgreSQL reads it. The driver's own way takes sixteen times as long, an array joined in the end still four
 * times, and both would hold up the event loop.
 */
function arrayText({ value, quoted }: Column, entries: readonly NodeRecord[], periods: Periods): string {
  let text = "{";
  for (const entry of entries) {
    const one = value(entry, periods);
    if (text.length > 1) text += ",";
    text += quoted ? JSON.stringify(one) : (one ?? "null");
  }
  return `${text}}`;
}

interface Column {
  readonly name: string;
  readonly type: string;
  /** Its texts may hold anything; those of the others nothing that an array gives a meaning. */
  readonly quoted?: true;
  readonly value: (entry: NodeRecord, periods: Periods) => Value;
}

const columns: readonly Column[] = [
  { name: "request_id", type: "uuid", value: ({ record }) => record.requestId },
  { name: "attempt", type: "smallint", value: ({ record }) => record.attempt },
  { name: "account_id", type: "uuid", value: ({ record }) => record.accountId },
  { name: "user_id", type: "uuid", value: ({ record }) => record.userId },
  { name: "key_id", type: "uuid", value: ({ record }) => record.keyId },
  { name: "model", type: "text", quoted: true, value: ({ record }) => record.model },
  { name: "node", type: "text", quoted: true, value: ({ node }) => node },
  { name: "period_start", type: "timestamptz", value: ({ record }, periods) => periods.startOf(record) },
  { name: "day", type: "date", value: ({ record }, periods) => periods.dayOf(record) },
  { name: "prompt_tokens", type: "integer", value: ({ record }) => record.promptTokens },
  { name: "completion_tokens", type: "integer", value: ({ record }) => record.completionTokens },
  { name: "reasoning_tokens", type: "integer", value: ({ record }) => measurement(record.reasoningTokens) },
  { name: "cached_tokens", type: "integer", value: ({ record }) => measurement(record.cachedTokens) },
  { name: "factor", type: "bigint", value: ({ record }) => record.factor },
  {
    name: "credits",
    type: "bigint",
    value: ({ record }) => creditsOf(record.promptTokens, record.completionTokens, record.factor),
  },
  { name: "source", type: "text", value: ({ record }) => record.source },
  { name: "outcome", type: "text", value: ({ record }) => record.outcome },
  { name: "duration_ms", type: "integer", value: ({ record }) => measurement(record.durationMs) ?? 0 },
  { name: "first_token_ms", type: "integer", value: ({ record }) => measurement(record.firstTokenMs) },
];

const names = columns.map(({ name }) => name).join(", ");
const arrays = columns.map(({ type }, index) => `$${index + 1}::${type}[]`).join(", ");
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

/** The billing periods and German days of a batch. Few of them, many records: each is found once. */
class Periods {
  readonly #ordered = new Map<string, readonly Term[]>();
  readonly #found = new Map<string, BillingPeriod & { readonly start: string }>();
  readonly #days = new Map<number, string>();

  constructor(terms: readonly Term[]) {
    for (const term of terms) this.#ordered.set(term.accountId, [...(this.#ordered.get(term.accountId) ?? []), term]);
  }

  startOf({ accountId, requestId }: UsageRecord): string {
    const atMs = uuidv7TimeMs(requestId);
    const last = this.#found.get(accountId);
    if (last && last.startMs <= atMs && atMs < last.endMs) return last.start;
    const term = this.#ordered.get(accountId)?.find(({ startMs, endMs }) => startMs <= atMs && atMs < endMs);
    if (!term) return "-infinity";
    const period = periodIn(term, atMs);
    const start = instantText(period.startMs);
    this.#found.set(accountId, { ...period, endMs: Math.min(period.endMs, term.endMs), start });
    return start;
  }

  /** German days begin at whole hours of UTC. */
  dayOf({ requestId }: UsageRecord): string {
    const hour = Math.floor(uuidv7TimeMs(requestId) / 3_600_000);
    const day = this.#days.get(hour) ?? germanDay(hour * 3_600_000);
    this.#days.set(hour, day);
    return day;
  }
}

interface Term {
  readonly accountId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly state: "trial" | "active";
  readonly rhythmMs: number;
}

async function readPeriods(pool: Pool, accounts: ReadonlySet<string>): Promise<Periods> {
  const { rows } = await pool.query<Term>({
    name: "terms-of-accounts",
    text: `select account_id as "accountId", state, (extract(epoch from started_at) * 1000)::float8 as "startMs",
        (extract(epoch from coalesce(ended_at, 'infinity')) * 1000)::float8 as "endMs",
        (extract(epoch from coalesce(rhythm_from, started_at)) * 1000)::float8 as "rhythmMs"
      from subscriptions where account_id = any($1::uuid[])`,
    values: [[...accounts]],
  });
  return new Periods(rows);
}
