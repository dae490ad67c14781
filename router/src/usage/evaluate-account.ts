/** Compares an account's usage in its billing period with its quota and the limits of its users and keys. */
import { sql, type RawBuilder, type Transaction } from "kysely";
import type { Pool } from "pg";
import { formatCredits } from "@weiche/shared/credits.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { addNotices, renewsNotice } from "../accounts/notices.ts";
import { quotaOf } from "../subscriptions/packages.ts";
import { bookedTerms } from "../subscriptions/subscription-rules.ts";
import { periodOf, readSubscription } from "../subscriptions/subscription.ts";
import { instantText, instantValue } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";

/** Percentages of the quota. Each adds a notice, once per billing period. At 100 the quota is exhausted. */
const levels = [75, 90, 100] as const;

/** Finds the accounts near or beyond a limit or blocked now. It may return a few more. */
export async function accountsToEvaluate(pool: Pool, nowMs: number): Promise<readonly AccountId[]> {
  const { rows } = await pool.query<{ id: AccountId }>({
    name: "accounts-to-evaluate",
    text: candidatesSql,
    values: [instantText(nowMs)],
  });
  return rows.map(({ id }) => id);
}

// A billing period has at most 31 days and an hour, except a trial, which may last a year.
const used = (scope: string, subject: string) => `
  (select max(t.credits) from usage_totals t where t.account_id = x.account_id and t.scope = '${scope}'
     and t.subject = ${subject} and t.period_start >= least($1::timestamptz - interval '32 days',
       (select min(s.started_at) from subscriptions s where s.account_id = x.account_id and s.state = 'trial'
          and s.started_at <= $1 and s.ended_at > $1)))`;
const limited = (table: string, scope: string) => `
  select x.account_id from ${table} x
  where x.limit_reached_until > $1 or x.credit_limit <= coalesce(${used(scope, "x.id::text")}, 0)`;
const candidatesSql = `
  select id from accounts where exhausted_until > $1
  union select x.account_id from subscriptions x
    join (select package as name, min(credits) * 1000 as quota from package_terms group by package) p on p.name = x.package
    where x.started_at <= $1 and (x.ended_at is null or x.ended_at > $1)
      and ${used("account", "''")} >= p.quota * ${Math.min(...levels)} / 100
  union ${limited("users", "user")}
  union ${limited("api_keys", "key")} and x.revoked_at is null
  order by 1`;

/** Locks the account so that its package cannot change meanwhile. Returns the numbers of changed rows and new notices. */
export async function evaluateAccount(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  clockMs: number,
): Promise<{ readonly changed: number; readonly notices: number }> {
  const { terms, nowMs, book } = await readSubscription(transaction, accountId, clockMs, "locked");
  const period = periodOf(terms, nowMs);
  if (!period) return { changed: 0, notices: 0 };
  const quota = quotaOf(bookedTerms(period.term, nowMs, book));
  const start = instantText(period.startMs);
  const times = { end: instantText(period.endMs), now: instantText(nowMs) };
  const credits = await transaction
    .selectFrom("usageTotals")
    .select("credits")
    .where("accountId", "=", accountId)
    .where("periodStart", "=", instantValue(period.startMs))
    .where("scope", "=", "account")
    .executeTakeFirst();
  const reached = levels.filter((level) => (credits?.credits ?? 0n) * 100n >= quota * BigInt(level));
  const facts = {
    package: period.term.package,
    quota: formatCredits(quota),
    periodEnd: times.end,
  };
  // The period in the event makes each level's notice unique per billing period. A package that was upgraded within it has
  // its own.
  const isUpgraded = period.term.startMs > period.startMs;
  const event = isUpgraded ? `${period.startMs} ${period.term.package}` : String(period.startMs);
  const quotaNotices = reached.map((level) => ({ accountId, kind: `quota-${level}`, event, facts }) as const);
  const exhausted = sql<boolean>`${reached.includes(100)}::boolean`;
  const ofAccount = sql`x.account_id = ${accountId}`;
  const limit = "limit_reached_until";
  const changed = [
    await blockUntil(transaction, ["accounts", "exhausted_until"], sql`x.id = ${accountId}`, exhausted, times),
    await blockUntil(transaction, ["users", limit], ofAccount, beyondLimit("user", start), times),
    await blockUntil(
      transaction,
      ["api_keys", limit],
      sql`${ofAccount} and x.revoked_at is null`,
      beyondLimit("key", start),
      times,
    ),
  ];
  return {
    changed: changed.reduce((sum, rows) => sum + rows, 0),
    notices:
      (await addNotices(transaction, quotaNotices, nowMs)) +
      (await noticeLimits(transaction, accountId, period.startMs, times)),
  };
}

/**
 * Blocks the rows that reached their limit and unblocks all others. Returns how many rows changed. It is one statement, so
 * that a limit raised meanwhile is respected.
 */
async function blockUntil(
  transaction: Transaction<Schema>,
  [table, column]: readonly [table: string, column: string],
  which: RawBuilder<unknown>,
  beyond: RawBuilder<boolean>,
  { end, now }: { readonly end: string; readonly now: string },
): Promise<number> {
  const until = sql`(case when ${beyond} then ${end}::timestamptz end)`;
  const held = sql.ref(`x.${column}`);
  const { numAffectedRows } = await sql`
    update ${sql.table(table)} x set ${sql.raw(column)} = ${until}
    where ${which} and ${until} is distinct from (case when ${held} > ${now}::timestamptz then ${held} end)
  `.execute(transaction);
  return Number(numAffectedRows);
}

/** SQL condition: the limit is reached. A limit of 0 is reached at once. */
function beyondLimit(scope: "user" | "key", start: string): RawBuilder<boolean> {
  return sql`coalesce(x.credit_limit <= coalesce((select t.credits from usage_totals t
    where t.account_id = x.account_id and t.period_start = ${start}::timestamptz
      and t.scope = ${scope} and t.subject = x.id::text), 0), false)`;
}

/** Adds a notice for each blocked user and key, once per billing period. A changed limit renews it. */
async function noticeLimits(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  periodStartMs: number,
  { end, now }: { readonly end: string; readonly now: string },
): Promise<number> {
  const columns = { "user-limit": ["users", "x.id", "null::uuid"], "key-limit": ["api_keys", "x.user_id", "x.id"] };
  let added = 0;
  for (const [kind, [table, userId, keyId]] of Object.entries(columns)) {
    const { numAffectedRows } = await sql`
      insert into notices (account_id, kind, event, user_id, key_id, facts, created_at)
      select x.account_id, ${kind}, concat_ws(' ', x.id, ${String(periodStartMs)}::text),
        ${sql.raw(userId!)}, ${sql.raw(keyId!)},
        jsonb_build_object('limit', (x.credit_limit / 1000.0)::numeric(20, 3)::text, 'periodEnd', ${end}::text), ${now}::timestamptz
      from ${sql.table(table!)} x
      where x.account_id = ${accountId} and x.limit_reached_until > ${now}::timestamptz and x.credit_limit is not null
      ${sql.raw(renewsNotice)}`.execute(transaction);
    added += Number(numAffectedRows ?? 0n);
  }
  return added;
}
