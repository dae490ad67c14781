/** Reads an account's subscription and its usage in the current billing period. */
import { millicredits } from "@weiche/shared/credits.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText, instantValue, type Database } from "../db/database.ts";
import { quotaOf } from "./packages.ts";
import { bookedTerms } from "./subscription-rules.ts";
import { periodOf, readSubscription, viewSubscription } from "./subscription.ts";

export type PackageUse = Awaited<ReturnType<typeof packageUse>>;

export async function packageUse({ kysely }: Database, accountId: AccountId, clockMs: number) {
  const { terms, nowMs, book } = await readSubscription(kysely, accountId, clockMs);
  const period = periodOf(terms, nowMs);
  const booked = period && bookedTerms(period.term, nowMs, book);
  const { exhaustedUntil } = await kysely
    .selectFrom("accounts")
    .select("exhaustedUntil")
    .where("id", "=", accountId)
    .executeTakeFirstOrThrow();
  const total =
    period &&
    (await kysely
      .selectFrom("usageTotals")
      .select("credits")
      .where("accountId", "=", accountId)
      .where("periodStart", "=", instantValue(period.startMs))
      .where("scope", "=", "account")
      .executeTakeFirst());
  return {
    terms,
    book,
    nowMs,
    period,
    /** The terms of this period; undefined without a package. */
    booked,
    subscription: viewSubscription(terms, nowMs),
    /** A PostgreSQL timestamp; `infinity` without a package, which matches no usage. */
    periodStart: period ? instantText(period.startMs) : "infinity",
    /** null without a package. */
    quota: booked ? quotaOf(booked) : null,
    used: millicredits(total?.credits ?? 0n),
    /** Requests are refused until then; null if they are not refused. */
    exhaustedUntil: exhaustedUntil && exhaustedUntil.epochMilliseconds > nowMs ? exhaustedUntil : null,
  };
}
