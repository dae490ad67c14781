/**
 * Converts usage records to the parameters of a statement: an array per column, with each record's billing period and day.
 * Also makes the SQL that adds such rows to the sums of periods and days.
 */
import type { Pool } from "pg";
import { creditsOf } from "@weiche/shared/credits.ts";
import { uuidv7TimeMs, type NodeId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { germanDay, type BillingPeriod } from "../subscriptions/billing-period.ts";
import { periodIn } from "../subscriptions/subscription-rules.ts";
import { instantText } from "../db/database.ts";
import { measurement } from "./usage-check.ts";
import type { SummedColumn } from "./usage-columns.ts";

/** A record whose grant was checked. */
export type CheckedRecord = Omit<UsageRecord, "tokensMax" | "grant">;

export interface NodeRecord {
  readonly node: NodeId;
  readonly record: CheckedRecord;
}

/**
 * Returns the values of a statement that inserts the records, an array per column. Records are ordered by primary key, so
 * that two routers that write the same rows cannot deadlock.
 */
export async function rowsOf(pool: Pool, records: readonly NodeRecord[]): Promise<string[]> {
  const periods = await readPeriods(pool, new Set(records.map(({ record }) => record.accountId)));
  const sorted = records.toSorted(({ record: a }, { record: b }) =>
    a.requestId < b.requestId ? -1 : a.requestId > b.requestId ? 1 : a.attempt - b.attempt,
  );
  return columns.map((column) => arrayText(column, sorted, periods));
}

type Value = string | number | bigint | undefined;

/**
 * Writes an array as PostgreSQL reads it. The driver takes sixteen times as long and `join` four times, and both would
 * block the event loop.
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
  /** True if values may contain characters with a meaning in an array. */
  readonly quoted?: true;
  readonly value: (entry: NodeRecord, periods: Periods) => Value;
}

const summed: Readonly<Record<SummedColumn, Pick<Column, "type" | "value">>> = {
  prompt_tokens: { type: "integer", value: ({ record }) => record.promptTokens },
  completion_tokens: { type: "integer", value: ({ record }) => record.completionTokens },
  credits: {
    type: "bigint",
    value: ({ record }) => creditsOf(record.promptTokens, record.completionTokens, record.factor),
  },
  estimated_tokens: { type: "integer", value: ({ record }) => estimatedOf(record) },
};
/** The columns of a usage record that are added to sums. */
export const summedColumns = Object.keys(summed) as SummedColumn[];

const columns: readonly Column[] = [
  ...summedColumns.map((name) => ({ name, ...summed[name] })),
  { name: "request_id", type: "uuid", value: ({ record }) => record.requestId },
  { name: "attempt", type: "smallint", value: ({ record }) => record.attempt },
  { name: "account_id", type: "uuid", value: ({ record }) => record.accountId },
  { name: "user_id", type: "uuid", value: ({ record }) => record.userId },
  { name: "key_id", type: "uuid", value: ({ record }) => record.keyId },
  { name: "model", type: "text", quoted: true, value: ({ record }) => record.model },
  { name: "node", type: "text", quoted: true, value: ({ node }) => node },
  { name: "period_start", type: "timestamptz", value: ({ record }, periods) => periods.startOf(record) },
  { name: "day", type: "date", value: ({ record }, periods) => periods.dayOf(record) },
  { name: "reasoning_tokens", type: "integer", value: ({ record }) => measurement(record.reasoningTokens) },
  { name: "cached_tokens", type: "integer", value: ({ record }) => measurement(record.cachedTokens) },
  { name: "factor", type: "bigint", value: ({ record }) => record.factor },
  { name: "source", type: "text", value: ({ record }) => record.source },
  { name: "outcome", type: "text", value: ({ record }) => record.outcome },
  { name: "duration_ms", type: "integer", value: ({ record }) => measurement(record.durationMs) ?? 0 },
  { name: "first_token_ms", type: "integer", value: ({ record }) => measurement(record.firstTokenMs) },
];

/** Limits the estimated tokens to the billed tokens. */
function estimatedOf({ estimatedTokens, promptTokens, completionTokens }: CheckedRecord): number {
  return Math.min(measurement(estimatedTokens) ?? 0, promptTokens + completionTokens);
}

/** SQL of the column names, and of the statement's parameters as arrays. */
export const names = columns.map(({ name }) => name).join(", ");
export const arrays = columns.map(({ type }, index) => `$${index + 1}::${type}[]`).join(", ");

/** Finds the billing periods and German days of a batch. Each is computed once, because many records share them. */
class Periods {
  readonly #ordered = new Map<string, readonly Term[]>();
  readonly #found = new Map<string, BillingPeriod & { readonly start: string }>();
  readonly #days = new Map<number, string>();

  constructor(terms: readonly Term[]) {
    for (const term of terms) this.#ordered.set(term.accountId, [...(this.#ordered.get(term.accountId) ?? []), term]);
  }

  startOf({ accountId, requestId }: CheckedRecord): string {
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

  /** Computes one day per UTC hour, because German days begin at whole hours of UTC. */
  dayOf({ requestId }: CheckedRecord): string {
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

/** Sums of credits by model in a query's result: texts, because JSON has no integers of this size. */
export type CreditsTexts = Readonly<Record<string, string>>;

/** SQL of a query for the credits by model of the rows of a clause. */
export function creditsByModel(rows: string): string {
  return `select coalesce(json_object_agg(model, credits), '{}')
    from (select model, sum(credits)::text as credits from ${rows} group by model) s`;
}

const moved = ["requests", ...summedColumns];
const totalKeys = "account_id, period_start, scope, subject";
const dayKeys = "account_id, day, period_start, user_id, key_id, model";

/**
 * SQL of the clauses `totals` and `days` of a `with`. They add the rows of the clause `rows` to the sums, or subtract them.
 * Rows have the columns of a usage record, and `requests`. Sums are locked in the order of their keys against deadlocks.
 */
export function movedSums(rows: string, sign: "+" | "-"): string {
  const set = moved.map((name) => `${name} = t.${name} ${sign} excluded.${name}`).join(", ");
  const sums = moved.map((name) => `sum(${name}) as ${name}`).join(", ");
  return `totals as (
    insert into usage_totals as t (${totalKeys}, ${moved.join(", ")})
    select ${totalKeys}, ${sums}
    from ${rows}
    cross join lateral (values ('account', ''), ('user', user_id::text), ('key', key_id::text), ('model', model)) s (scope, subject)
    group by ${totalKeys}
    order by ${totalKeys}
    on conflict (${totalKeys}) do update set ${set}
  ), days as (
    insert into usage_days as t (${dayKeys}, ${moved.join(", ")})
    select ${dayKeys}, ${sums}
    from ${rows}
    group by ${dayKeys}
    order by ${dayKeys}
    on conflict (${dayKeys}) do update set ${set}
  )`;
}
