/** How an account stands: what is left of its quota and for how long, its rate of now, and the limit of the user who looks. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { formatCredits, millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { germanDay } from "../subscriptions/billing-period.ts";
import { packages } from "../subscriptions/packages.ts";
import { periodOf, toTerm } from "../subscriptions/subscription.ts";
import { instantText, type Database } from "../db/database.ts";
import type { Limiter } from "../limits/limiter.ts";
import { forecast, paceBeginsMs } from "./forecast.ts";

/** Amounts are credits with three places; null: not known, or there is none. */
export async function viewCredits(
  { kysely, pool }: Database,
  limiter: Pick<Limiter, "use">,
  clock: Clock,
  accountId: AccountId,
  userId: UserId | undefined,
) {
  const rows = await kysely
    .selectFrom("subscriptions as s")
    .innerJoin("accounts as a", "a.id", "s.accountId")
    .selectAll("s")
    .select("a.packageChangedAt")
    .where("s.accountId", "=", accountId)
    .orderBy("s.startedAt")
    .execute();
  // A router whose clock is ahead may have changed the package.
  const nowMs = Math.max(clock.now(), rows[0]?.packageChangedAt?.epochMilliseconds ?? -Infinity);
  const terms = rows.map(toTerm);
  const period = periodOf(terms, nowMs);
  const sinceMs = paceBeginsMs(nowMs, terms[0]?.startMs ?? nowMs);
  const { rows: found } = await pool.query<Amounts>(amountsSql, [
    accountId,
    userId,
    period ? instantText(period.startMs) : null,
    germanDay(sinceMs),
  ]);
  const { used, ownUsed, recent, limit, exhaustedUntil, reachedUntil } = found[0]!;
  const booked = period && packages[period.term.package];
  const quota = booked ? millicredits(booked.creditsPerMonth * 1000n) : null;
  const remaining = quota === null ? null : millicredits(quota - used);
  const pace = { used: recent, sinceMs, nowMs };
  const expected = period && remaining !== null ? forecast(pace, remaining, period.endMs) : undefined;
  const inUse = await limiter.use(accountId);
  return {
    asOf: instantText(nowMs),
    package: booked?.name ?? null,
    periodStart: period ? instantText(period.startMs) : null,
    periodEnd: period ? instantText(period.endMs) : null,
    quota: text(quota),
    used: period ? formatCredits(used) : null,
    remaining: text(remaining),
    exhaustedUntil: ahead(exhaustedUntil, nowMs),
    forecast: expected
      ? {
          perDay: formatCredits(expected.perDay),
          until: expected.untilMs === null ? null : instantText(expected.untilMs),
        }
      : null,
    rate: {
      lastMinute: inUse.lastMinute,
      perMinute: booked?.requestsPerMinute ?? null,
      parallel: inUse.parallel,
      parallelMax: booked?.parallelRequests ?? null,
    },
    own: {
      used: period ? formatCredits(ownUsed) : null,
      limit: text(limit),
      remaining: limit === null || !period ? null : formatCredits(millicredits(limit - ownUsed)),
      reachedUntil: ahead(reachedUntil, nowMs),
    },
  };
}

interface Amounts {
  readonly used: Millicredits;
  readonly ownUsed: Millicredits;
  /** Since the pace begins. */
  readonly recent: Millicredits;
  readonly limit: Millicredits | null;
  readonly exhaustedUntil: Temporal.Instant | null;
  readonly reachedUntil: Temporal.Instant | null;
}

const ofPeriod = (scope: string, subject: string) => `
  coalesce((select t.credits from usage_totals t
    where t.account_id = a.id and t.period_start = $3::timestamptz and t.scope = '${scope}' and t.subject = ${subject}), 0)`;

const amountsSql = `
  select ${ofPeriod("account", "''")} as used, ${ofPeriod("user", "u.id::text")} as "ownUsed",
    coalesce((select sum(d.credits)::bigint from usage_days d where d.account_id = a.id and d.day >= $4), 0) as recent,
    u.credit_limit as limit, a.exhausted_until as "exhaustedUntil", u.limit_reached_until as "reachedUntil"
  from accounts a left join users u on u.account_id = a.id and u.id = $2 where a.id = $1`;

function text(amount: Millicredits | null): string | null {
  return amount === null ? null : formatCredits(amount);
}

function ahead(instant: Temporal.Instant | null, nowMs: number): string | null {
  return instant && instant.epochMilliseconds > nowMs ? instant.toString() : null;
}
