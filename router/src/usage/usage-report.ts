/** Usage of an account for people: sums over a billing period or German days, and their parts by day, model, key or user. */
import type { Pool } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { formatCredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { germanDay, type BillingPeriod } from "../subscriptions/billing-period.ts";
import { found } from "../rights/refused.ts";
import { periodOf, toTerm } from "../subscriptions/subscription.ts";
import { instantText, type Database } from "../db/database.ts";
import type { UsagePart } from "./usage-parts.ts";

/** `from` and `to`: German days, both included; absent: the current billing period, without a package this month. */
export interface UsageWish {
  readonly from?: string;
  readonly to?: string;
  readonly by?: UsagePart;
}

export interface UsageSums {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** With three places. */
  readonly credits: string;
}

export interface UsageReport {
  readonly accountId: AccountId;
  readonly by: UsagePart;
  readonly from: string;
  readonly to: string;
  /** Of the billing period, if that was asked for. */
  readonly periodStart?: string;
  readonly periodEnd?: string;
  readonly asOf: string;
  readonly totals: UsageSums;
  /** Each with its part (`day`, `model`, `key` or `user`); keys and users also with the name people know. */
  readonly rows: readonly (UsageSums & Readonly<Partial<Record<UsagePart | "name", string>>>)[];
}

export async function reportUsage(
  database: Database,
  clock: Clock,
  accountId: AccountId,
  wish: UsageWish,
): Promise<UsageReport> {
  const account = database.kysely.selectFrom("accounts").select("id").where("id", "=", accountId);
  found(await account.executeTakeFirst(), "account", accountId);
  const nowMs = clock.now();
  const by = wish.by ?? "day";
  const { from, to, period } = await spanOf(database, accountId, wish, nowMs);
  const periodStart = period && instantText(period.startMs);
  const rows = await sumUp(database.pool, by, [accountId, from, to, periodStart ?? null]);
  return {
    accountId,
    by,
    from,
    to,
    ...(period ? { periodStart: periodStart!, periodEnd: instantText(period.endMs) } : {}),
    asOf: instantText(nowMs),
    totals: viewSums(rows.reduce(add, nothing)),
    rows: rows.map(({ part, name, ...sums }) => ({
      [by]: part,
      ...(name === null ? {} : { name }),
      ...viewSums(sums),
    })),
  };
}

/** The days that are meant; with the billing period if it is that. */
export async function spanOf(
  { kysely }: Pick<Database, "kysely">,
  accountId: AccountId,
  wish: Pick<UsageWish, "from" | "to">,
  nowMs: number,
): Promise<{ readonly from: string; readonly to: string; readonly period: BillingPeriod | undefined }> {
  const terms = await kysely.selectFrom("subscriptions").selectAll().where("accountId", "=", accountId).execute();
  const period = wish.from === undefined && wish.to === undefined ? periodOf(terms.map(toTerm), nowMs) : undefined;
  const today = germanDay(nowMs);
  return {
    from: wish.from ?? (period ? germanDay(period.startMs) : `${(wish.to ?? today).slice(0, 8)}01`),
    to: wish.to ?? (period ? germanDay(period.endMs - 1) : today),
    period,
  };
}

/** As the database adds them up. */
export interface Sums {
  readonly requests: bigint;
  readonly prompt: bigint;
  readonly completion: bigint;
  readonly credits: bigint;
}

const nothing: Sums = { requests: 0n, prompt: 0n, completion: 0n, credits: 0n };

interface PartSql {
  readonly column: string;
  /** What people know it by; null if that is the part itself. */
  readonly name: string;
  readonly order: string;
}

const heaviestFirst = "credits desc, part";
const parts: Readonly<Record<UsagePart, PartSql>> = {
  day: { column: "day", name: "null", order: "part" },
  model: { column: "model", name: "null", order: heaviestFirst },
  // The test chat's key has its user's id.
  key: {
    column: "key_id",
    name: `coalesce((select name from api_keys where id = part), (select 'test chat of ' || email from users where id = part))`,
    order: heaviestFirst,
  },
  user: { column: "user_id", name: "(select email from users where id = part)", order: heaviestFirst },
};

async function sumUp(pool: Pool, by: UsagePart, values: readonly unknown[]) {
  const { column, name, order } = parts[by];
  const { rows } = await pool.query<Sums & { part: string; name: string | null }>(
    `select part::text, ${name} as name, requests, prompt, completion, credits from (
       select ${column} as part, sum(requests)::bigint as requests, sum(prompt_tokens)::bigint as prompt,
         sum(completion_tokens)::bigint as completion, sum(credits)::bigint as credits
       from usage_days
       where account_id = $1 and requests > 0 and day between $2 and $3 and ($4::timestamptz is null or period_start = $4)
       group by ${column}
     ) sums order by ${order}`,
    [...values],
  );
  return rows;
}

function add(a: Sums, b: Sums): Sums {
  return {
    requests: a.requests + b.requests,
    prompt: a.prompt + b.prompt,
    completion: a.completion + b.completion,
    credits: a.credits + b.credits,
  };
}

export function viewSums({ requests, prompt, completion, credits }: Sums): UsageSums {
  return {
    requests: Number(requests),
    promptTokens: Number(prompt),
    completionTokens: Number(completion),
    totalTokens: Number(prompt + completion),
    credits: formatCredits(credits as Millicredits),
  };
}
