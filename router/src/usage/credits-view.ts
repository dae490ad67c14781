/** Shows the state of an account's credits: remaining quota, forecast, current rate, and the user's own limit. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { formatCredits, millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { germanDay } from "../subscriptions/billing-period.ts";
import { packageUse } from "../subscriptions/package-use.ts";
import { instantText, type Database } from "../db/database.ts";
import type { Limiter } from "../limits/limiter.ts";
import { peakMs } from "../limits/limit-peaks.ts";
import type { Role } from "../db/schema.ts";
import { forecast, paceBeginsMs } from "./forecast.ts";

/** Returns amounts as credits with three decimal places; null if there is no amount. `own` is the limit of user `userId`. */
export async function viewCredits(
  database: Database,
  limiter: Limiter,
  clock: Clock,
  accountId: AccountId,
  userId: UserId | undefined,
) {
  const use = await packageUse(database, accountId, clock.now());
  const { terms, nowMs, period, booked, subscription, periodStart, quota, used, exhaustedUntil } = use;
  const sinceMs = paceBeginsMs(nowMs, terms[0]?.startMs ?? nowMs);
  const values = [accountId, userId, periodStart, germanDay(sinceMs), instantText(nowMs - peakMs)];
  const { rows } = await database.pool.query<Amounts & Beginning>(amountsSql, values);
  const { ownUsed, recent, limit, reachedUntil, hasCalled, hasCalledOwn, ...more } = rows[0]!;
  const remaining = quota === null ? null : millicredits(quota - used);
  const pace = { used: recent, sinceMs, nowMs };
  const expected = period && remaining !== null ? forecast(pace, remaining, period.endMs) : undefined;
  const inUse = await limiter.use(accountId);
  return {
    asOf: instantText(nowMs),
    ...subscription,
    quota: text(quota),
    used: period ? formatCredits(used) : null,
    remaining: text(remaining),
    exhaustedUntil: exhaustedUntil?.toString() ?? null,
    forecast: expected
      ? {
          perDay: formatCredits(expected.perDay),
          until: expected.untilMs === null ? null : instantText(expected.untilMs),
          atEnd: formatCredits(millicredits(used + expected.toCome)),
        }
      : null,
    rate: {
      lastMinute: inUse.lastMinute,
      perMinute: booked?.requestsPerMinute ?? null,
      parallel: inUse.parallel,
      parallelMax: booked?.parallelRequests ?? null,
      peakMinute: Math.max(more.peakMinute, inUse.lastMinute),
      peakParallel: Math.max(more.peakParallel, inUse.parallel),
    },
    own: {
      used: period ? formatCredits(ownUsed) : null,
      limit: text(limit),
      remaining: limit === null || !period ? null : formatCredits(millicredits(limit - ownUsed)),
      reachedUntil: reachedUntil && reachedUntil.epochMilliseconds > nowMs ? reachedUntil.toString() : null,
      hasCalled: hasCalledOwn,
    },
    hasCalled,
    checklist: userId ? await checklistOf(database, userId, rows[0]!, quota !== null) : null,
  };
}

/** Returns the person's first steps; null once they are done or hidden, which is remembered. */
async function checklistOf({ kysely }: Database, userId: UserId, is: Amounts & Beginning, hasPackage: boolean) {
  if (is.checklistHidden) return null;
  const isMember = is.role === "member";
  const steps = {
    package: hasPackage,
    key: is.hasKey,
    // Owners and Admins may leave the calls to others.
    call: isMember ? is.hasCalledOwn : is.hasCalled,
    colleagues: isMember ? null : is.hasColleagues,
  };
  if (Object.values(steps).includes(false)) return steps;
  await kysely.updateTable("users").set({ checklistHidden: true }).where("id", "=", userId).execute();
  return null;
}

interface Amounts {
  /** Used by the user in the billing period. */
  readonly ownUsed: Millicredits;
  /** Used by the account in the days of the forecast. */
  readonly recent: Millicredits;
  readonly limit: Millicredits | null;
  readonly reachedUntil: Temporal.Instant | null;
  readonly hasCalled: boolean;
  readonly hasCalledOwn: boolean;
  readonly peakMinute: number;
  readonly peakParallel: number;
}

/** What a person has done so far. */
interface Beginning {
  readonly role: Role | null;
  readonly checklistHidden: boolean | null;
  readonly hasKey: boolean;
  readonly hasColleagues: boolean;
}

const amountsSql = `
  select coalesce((select t.credits from usage_totals t where t.account_id = a.id and t.period_start = $3::timestamptz
      and t.scope = 'user' and t.subject = u.id::text), 0) as "ownUsed",
    coalesce((select sum(d.credits)::bigint from usage_days d where d.account_id = a.id and d.day >= $4), 0) as recent,
    u.credit_limit as limit, u.limit_reached_until as "reachedUntil",
    exists(select from usage_totals t where t.account_id = a.id and t.scope = 'account') as "hasCalled",
    exists(select from usage_totals t where t.account_id = a.id and t.scope = 'user' and t.subject = u.id::text)
      as "hasCalledOwn",
    coalesce(p.minute, 0) as "peakMinute", coalesce(p.parallel, 0) as "peakParallel",
    u.role, u.checklist_hidden as "checklistHidden",
    exists(select from api_keys k where k.user_id = u.id and k.revoked_at is null) as "hasKey",
    exists(select from users o where o.account_id = a.id and o.id <> u.id and o.deleted_at is null) as "hasColleagues"
  from accounts a left join users u on u.account_id = a.id and u.id = $2
    cross join lateral (select max(per_minute) as minute, max(parallel) as parallel from limit_peaks
      where account_id = a.id and hour > $5) p
  where a.id = $1`;

function text(amount: Millicredits | null): string | null {
  return amount === null ? null : formatCredits(amount);
}
