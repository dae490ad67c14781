/** Makes the items of the console's accounts page: package, use, refusals, and blocks of accounts and people. */
import { sql } from "kysely";
import { formatCredits, millicredits } from "@weiche/shared/credits.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../../../db/database.ts";
import { containing, readPage } from "../../../rights/list-page.ts";
import { quotaOf, readPackages } from "../../../subscriptions/packages.ts";
import { bookedTerms } from "../../../subscriptions/subscription-rules.ts";
import { periodOf, toTerm, viewSubscription } from "../../../subscriptions/subscription.ts";
import { hourMs } from "../../../usage/refusal-counts.ts";
import type { ConsoleAccount } from "../../contract/console.ts";
import type { HandlerDeps } from "../handler-deps.ts";
import type { Items } from "./live-stream.ts";

const accountsOnPage = 25;

export interface AccountsWish {
  readonly search?: string;
  /** Page, from 1. */
  readonly at?: number;
  readonly sort?: "name" | "used" | "refused";
}

interface Listed {
  readonly id: AccountId;
  readonly name: string;
  readonly blockedAt: Temporal.Instant | null;
  readonly exhaustedUntil: Temporal.Instant | null;
  readonly users: number;
  readonly blockedUsers: number;
}

/** Returns the item `total`, and one page's accounts by their ids with their places on the page. */
export async function accountItems(
  { database, clock, limiter }: HandlerDeps,
  { search, at = 1, sort = "name" }: AccountsWish,
): Promise<Items> {
  const nowMs = clock.now();
  const since = instantText((Math.floor(nowMs / hourMs) - 23) * hourMs);
  const matching = sql`
    select a.id, a.name, a.blocked_at, a.exhausted_until,
      (select t.credits from usage_totals t where t.account_id = a.id and t.scope = 'account'
        order by t.period_start desc limit 1) as used,
      (select sum(r.count)::bigint from refusals r where r.account_id = a.id and r.hour >= ${since}::timestamptz) as refused,
      (select count(*)::integer from users u where u.account_id = a.id and u.deleted_at is null) as users,
      (select count(*)::integer from users u where u.account_id = a.id and u.deleted_at is null and u.blocked) as blocked_users
    from accounts a where a.deleted_at is null and ${containing(search, "a.name")}`;
  const page = { limit: accountsOnPage, offset: (at - 1) * accountsOnPage };
  const order = sort === "name" ? ({ order: "asc" } as const) : ({ order: "desc" } as const);
  const by = sort === "name" ? "lower(name)" : sort;
  const { rows, total } = await readPage<Listed>(database, matching, { ...page, ...order }, by, "id");
  const ids = rows.map(({ id }) => id);
  const [book, terms, used, refused] = await Promise.all([
    readPackages(database.kysely),
    termsOf(database, ids),
    usedBy(database, ids),
    refusedOf(database, ids, since),
  ]);
  const items = new Map<string, object>([["total", { total }]]);
  for (const [place, row] of rows.entries()) {
    const own = (terms.get(row.id) ?? []).map(toTerm);
    const period = periodOf(own, nowMs);
    const ofPeriod = used.get(row.id)?.find(({ periodStart }) => periodStart.epochMilliseconds === period?.startMs);
    const { parallel, lastMinute } = await limiter.use(row.id);
    const account: ConsoleAccount = {
      id: row.id,
      name: row.name,
      blockedAt: row.blockedAt?.toString() ?? null,
      ...viewSubscription(own, nowMs),
      quota: period ? formatCredits(quotaOf(bookedTerms(period.term, nowMs, book))) : null,
      used: period ? formatCredits(millicredits(ofPeriod?.credits ?? 0n)) : null,
      exhausted: row.exhaustedUntil !== null && row.exhaustedUntil.epochMilliseconds > nowMs,
      ...{ parallel, lastMinute, users: row.users, blockedUsers: row.blockedUsers },
      refused: (refused.get(row.id) ?? []).map(({ code, count }) => ({ code, count: Number(count) })),
    };
    items.set(row.id, { account, place });
  }
  return items;
}

async function termsOf({ kysely }: Database, ids: readonly AccountId[]) {
  if (ids.length === 0) return new Map<AccountId, never[]>();
  const rows = kysely.selectFrom("subscriptions").selectAll().where("accountId", "in", ids).orderBy("startedAt");
  return Map.groupBy(await rows.execute(), ({ accountId }) => accountId);
}

async function usedBy({ kysely }: Database, ids: readonly AccountId[]) {
  if (ids.length === 0) return new Map<AccountId, never[]>();
  const rows = kysely.selectFrom("usageTotals").select(["accountId", "periodStart", "credits"]);
  const ofAccounts = await rows.where("accountId", "in", ids).where("scope", "=", "account").execute();
  return Map.groupBy(ofAccounts, ({ accountId }) => accountId);
}

/** Counts refusals by code, the most frequent first. */
async function refusedOf({ pool }: Database, ids: readonly AccountId[], since: string) {
  const { rows } = await pool.query<{ accountId: AccountId; code: string; count: bigint }>(
    `select account_id as "accountId", code, sum(count)::bigint as count from refusals
     where account_id = any($1) and hour >= $2 group by account_id, code order by count desc, code`,
    [ids, since],
  );
  return Map.groupBy(rows, ({ accountId }) => accountId);
}
