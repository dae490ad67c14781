/** Writes a change of an account's package, its terms and invoice lines, in the caller's transaction. */
import { sql, type Transaction } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { found } from "../rights/refused.ts";
import { chargesOf, nextChargeMs, termAt, type Charge, type Term } from "./subscription-rules.ts";
import { periodOf, toTerm } from "./subscription.ts";

export interface LockedSubscription {
  readonly terms: readonly Term[];
  /** The current time, but never before an earlier change or charge. */
  readonly nowMs: number;
}

/** Locks the package until the transaction ends. Rows that reference the account can still be added. */
export async function lockSubscription(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  clockMs: number,
): Promise<LockedSubscription> {
  const locked = transaction
    .selectFrom("accounts")
    .select("packageChangedAt")
    .where("id", "=", accountId)
    .forNoKeyUpdate();
  const { packageChangedAt } = found(await locked.executeTakeFirst(), "account", accountId);
  const rows = await transaction
    .selectFrom("subscriptions")
    .selectAll()
    .where("accountId", "=", accountId)
    .orderBy("startedAt")
    .execute();
  return {
    terms: rows.map(toTerm),
    nowMs: Math.max(clockMs, packageChangedAt?.epochMilliseconds ?? -Infinity),
  };
}

/**
 * Writes the invoice lines that are due and not written yet; idempotent. No later change of the account may be dated
 * before this instant, so that a clock that is behind cannot end a period whose successor is charged.
 */
export async function writeCharges(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  terms: readonly Term[],
  nowMs: number,
): Promise<void> {
  const lines = chargesOf(terms, nowMs).map((charge) => lineOf(accountId, charge, nowMs));
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

/** Writes the new terms and their charges. Returns when they take effect, in ms. */
export async function writeChange(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  { terms: before, nowMs }: LockedSubscription,
  after: readonly Term[],
): Promise<number> {
  // `changeTerms` begins a term one millisecond late if the period began at this very instant.
  const changedMs = nowMs + 1;
  await writeTerms(transaction, accountId, before, after);
  await writeCharges(transaction, accountId, after, changedMs);
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
  const startOf = ({ startMs }: Term) => sql<Temporal.Instant>`${instantText(startMs)}::timestamptz`;
  const end = ({ endMs }: Term) => (endMs === Infinity ? null : instantText(endMs));
  for (const old of before.filter((term) => !after.some((kept) => isSame(term, kept))))
    await transaction
      .deleteFrom("subscriptions")
      .where("accountId", "=", accountId)
      .where("startedAt", "=", startOf(old))
      .execute();
  for (const term of after) {
    const old = before.find((candidate) => isSame(candidate, term));
    if (!old)
      await transaction
        .insertInto("subscriptions")
        .values({
          accountId,
          package: term.package,
          state: term.state,
          startedAt: instantText(term.startMs),
          endedAt: end(term),
          rhythmFrom: instantText(term.rhythmMs),
        })
        .execute();
    else if (old.endMs !== term.endMs)
      await transaction
        .updateTable("subscriptions")
        .set({ endedAt: end(term) })
        .where("accountId", "=", accountId)
        .where("startedAt", "=", startOf(term))
        .execute();
  }
}

function isSame(a: Term, b: Term): boolean {
  return a.startMs === b.startMs && a.package === b.package && a.state === b.state && a.rhythmMs === b.rhythmMs;
}

/** A new period begins with nothing used: limits reached before no longer block. */
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
