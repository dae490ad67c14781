/** Writes a changed package, its terms and invoice lines, in the caller's transaction. */
import type { Transaction } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText, instantValue } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { PackageBook } from "./packages.ts";
import { chargesOf, endTerms, nextChargeMs, termAt, type Charge, type Term } from "./subscription-rules.ts";
import { periodOf, readSubscription, type Subscription } from "./subscription.ts";

/**
 * Writes due invoice lines that are not written yet. Stores `nowMs` as the earliest time of the account's next change, so
 * that a router whose clock is behind cannot end a period after the next one was charged.
 */
export async function writeCharges(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  terms: readonly Term[],
  nowMs: number,
  book: PackageBook,
): Promise<void> {
  const lines = chargesOf(terms, nowMs, book).map((charge) => lineOf(accountId, charge, nowMs));
  if (lines.length > 0)
    await transaction
      .insertInto("invoiceLines")
      .values(lines)
      .onConflict((conflict) => conflict.columns(["accountId", "periodStart"]).doNothing())
      .execute();
  const nextMs = nextChargeMs(terms, nowMs);
  await transaction
    .updateTable("accounts")
    .set({
      nextChargeAt: nextMs === undefined ? null : instantText(nextMs),
      packageChangedAt: instantText(nowMs),
    })
    .where("id", "=", accountId)
    .execute();
}

/** Ends an account's package at once. Call it with the account's row locked. */
export async function endPackage(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  clockMs: number,
): Promise<void> {
  const subscription = await readSubscription(transaction, accountId, clockMs, "locked");
  const after = endTerms(subscription.terms, subscription.nowMs);
  if (after !== subscription.terms) await writeChange(transaction, accountId, subscription, after);
}

/** Writes the new terms and their charges. Returns the time at which they take effect, in ms. */
export async function writeChange(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  { terms: before, nowMs, book }: Subscription,
  after: readonly Term[],
): Promise<number> {
  // `changeTerms` begins a term one millisecond late if the period begins at this exact instant.
  const changedMs = nowMs + 1;
  await writeTerms(transaction, accountId, before, after);
  await writeCharges(transaction, accountId, after, changedMs, book);
  const account = transaction.updateTable("accounts").where("id", "=", accountId);
  if (termAt(before, nowMs)?.package !== termAt(after, changedMs)?.package)
    await account.set({ exhaustedUntil: null }).execute();
  if (periodOf(before, nowMs)?.startMs !== periodOf(after, changedMs)?.startMs)
    await forgetLimits(transaction, accountId);
  return changedMs;
}

async function writeTerms(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  before: readonly Term[],
  after: readonly Term[],
): Promise<void> {
  const isStart = (terms: readonly Term[], ms: number) => terms.some(({ startMs }) => startMs === ms);
  for (const { startMs } of before.filter((term) => !isStart(after, term.startMs)))
    await transaction
      .deleteFrom("subscriptions")
      .where("accountId", "=", accountId)
      .where("startedAt", "=", instantValue(startMs))
      .execute();
  for (const term of after.filter((one) => !before.includes(one))) {
    const row = {
      package: term.package,
      state: term.state,
      endedAt: term.endMs === Infinity ? null : instantText(term.endMs),
      rhythmFrom: instantText(term.rhythmMs),
    };
    await transaction
      .insertInto("subscriptions")
      .values({ accountId, startedAt: instantText(term.startMs), ...row })
      .onConflict((conflict) => conflict.columns(["accountId", "startedAt"]).doUpdateSet(row))
      .execute();
  }
}

/** Unblocks keys and users that reached their limits, because a new period begins with no usage. */
async function forgetLimits(transaction: Transaction<Schema>, accountId: AccountId): Promise<void> {
  for (const table of ["users", "apiKeys"] as const)
    await transaction
      .updateTable(table)
      .set({ limitReachedUntil: null })
      .where("accountId", "=", accountId)
      .where("limitReachedUntil", "is not", null)
      .execute();
}

function lineOf(accountId: AccountId, charge: Charge, nowMs: number) {
  return {
    accountId,
    reason: charge.reason,
    package: charge.package,
    periodStart: instantText(charge.startMs),
    periodEnd: instantText(charge.endMs),
    days: charge.days,
    periodDays: charge.periodDays,
    amountCents: charge.cents,
    createdAt: instantText(nowMs),
  };
}
