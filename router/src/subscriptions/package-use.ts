/** An account's subscription and what it used in the current billing period. */
import { sql } from "kysely";
import { millicredits } from "@weiche/shared/credits.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../db/database.ts";
import { packageChoices } from "./package-choices.ts";
import { packages } from "./packages.ts";
import { found } from "../rights/refused.ts";
import { periodOf, toTerm, viewSubscription } from "./subscription.ts";

export type PackageUse = Awaited<ReturnType<typeof packageUse>>;

export async function packageUse({ kysely }: Database, accountId: AccountId, clockMs: number) {
  const accounts = kysely
    .selectFrom("accounts")
    .select(["exhaustedUntil", "packageChangedAt"])
    .where("id", "=", accountId);
  const account = found(await accounts.executeTakeFirst(), "account", accountId);
  const nowMs = Math.max(clockMs, account.packageChangedAt?.epochMilliseconds ?? -Infinity);
  const rows = kysely.selectFrom("subscriptions").selectAll().where("accountId", "=", accountId).orderBy("startedAt");
  const terms = (await rows.execute()).map(toTerm);
  const period = periodOf(terms, nowMs);
  const periodStart = period ? instantText(period.startMs) : "infinity";
  const totals = kysely
    .selectFrom("usageTotals")
    .select("credits")
    .where("accountId", "=", accountId)
    .where("periodStart", "=", sql<Temporal.Instant>`${periodStart}::timestamptz`)
    .where("scope", "=", "account");
  return {
    subscription: viewSubscription(terms, nowMs),
    /** A PostgreSQL timestamp; `infinity` without a package, so that it matches no usage. */
    periodStart,
    /** null: no package. */
    quota: period ? millicredits(packages[period.term.package].creditsPerMonth * 1000n) : null,
    used: millicredits((await totals.executeTakeFirst())?.credits ?? 0n),
    /** Requests are refused until the period ends. */
    isExhausted: (account.exhaustedUntil?.epochMilliseconds ?? 0) > nowMs,
    choices: packageChoices(terms, nowMs),
  };
}
