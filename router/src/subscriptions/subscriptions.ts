/**
 * Changes of an account's package by its Owner. A preview returns what a change costs now, and a quote id. A change with
 * that id charges exactly this price, once however often it is sent. If the price has changed, it is refused.
 */
import { hash, randomBytes } from "node:crypto";
import type { Selectable, Transaction } from "kysely";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import type { InvoiceSettings } from "../config/invoice-settings.ts";
import { inTransaction, instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { ActingContext } from "../rights/accounts-context.ts";
import { audited } from "../rights/audit-log.ts";
import { issueDueInvoices } from "./invoices/issue-invoices.ts";
import { offeredTo, readPackages, termsAt, type PackageBook } from "./packages.ts";
import { RequestError } from "../rights/request-error.ts";
import { plainRow } from "../rights/plain-row.ts";
import { mayChangeAccount, requireRight } from "../rights/rights.ts";
import { writeChange, writeCharges } from "./subscription-change.ts";
import {
  bookedTerms,
  changeTerms,
  chargesOf,
  pendingOf,
  periodIn,
  termAt,
  type Charge,
  type SubscriptionAction,
  type Term,
} from "./subscription-rules.ts";
import {
  packageNamed,
  readSubscription,
  viewPending,
  viewSubscription,
  type Subscription,
  type SubscriptionView,
} from "./subscription.ts";

interface SubscriptionWish {
  readonly action: SubscriptionAction["kind"];
  /** The package's name in any case. Required for an order, an upgrade or a downgrade. */
  readonly package?: string;
}

export type Subscriptions = ReturnType<typeof createSubscriptions>;

/** `settings`: if undefined, no invoices are issued. */
export function createSubscriptions(context: ActingContext, settings?: InvoiceSettings) {
  const { database, clock } = context;
  const { kysely } = database;

  return {
    async preview(accountId: AccountId, wish: SubscriptionWish) {
      return quote(accountId, await readSubscription(kysely, accountId, clock.now()), wish);
    },

    /** Previews the first order of a new account. The price is net. */
    async previewFirst(packageName: string) {
      const wish = { action: "order", package: packageName } as const;
      const nothing = { terms: [], nowMs: clock.now(), book: await readPackages(kysely), isDeleted: false };
      const { dueCents, thenCents, after } = quote(asId<AccountId>(""), nothing, wish);
      return { package: after.package!, dueCents, thenCents };
    },

    /** Changes the package at the price of the quote, or at the current price without a quote. */
    change: (accountId: AccountId, wish: SubscriptionWish, quoteId?: string) =>
      audited(
        context,
        {
          action: `subscription.${wish.action}`,
          on: { kind: "account", id: accountId },
          details: { package: wish.package, quoteId },
        },
        async (transaction) => {
          const object = { kind: "account", id: accountId, accountId } as const;
          // Locks the account before its users, as the evaluation of usage does.
          await readSubscription(transaction, accountId, clock.now(), "locked");
          await requireRight(context, transaction, object, mayChangeAccount);
          return changePackage(transaction, accountId, wish, clock.now(), quoteId);
        },
      ),

    /** Lists invoice lines, oldest first. */
    async invoice(accountId: AccountId) {
      await readSubscription(kysely, accountId, clock.now()); // throws if there is no such account
      const lines = kysely.selectFrom("invoiceLines").selectAll().where("accountId", "=", accountId);
      return (await lines.orderBy("periodStart").execute()).map(viewLine);
    },

    /**
     * Writes the invoice lines of periods that have begun. Returns the number of accounts. If an account fails, the others
     * are still charged before the first error is thrown. Any router may call it at any time.
     */
    async chargeWhatIsDue(): Promise<number> {
      const { rows } = await database.pool.query<{ id: AccountId }>(
        "select id from accounts where next_charge_at <= $1 order by next_charge_at",
        [instantText(clock.now())],
      );
      const failures: unknown[] = [];
      for (const { id } of rows)
        await inTransaction(database, async (transaction) => {
          const { terms, nowMs, book } = await readSubscription(transaction, id, clock.now(), "locked");
          await writeCharges(transaction, id, terms, nowMs, book);
        }).catch((error: unknown) => failures.push(error)); // the other accounts must still be charged
      if (failures.length > 0) throw failures[0];
      return rows.length;
    },

    /** Issues the invoices of periods that have ended. Returns their number. Any router may call it at any time. */
    issueInvoices: () => issueDueInvoices(context, settings),
  };
}

/** Runs in the caller's transaction; the account's row stays locked until it ends. */
export async function changePackage(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  wish: SubscriptionWish,
  clockMs: number,
  quoteId?: string,
): Promise<SubscriptionView> {
  const locked = await readSubscription(transaction, accountId, clockMs, "locked");
  if (locked.isDeleted) throw new RequestError("not_found", `there is no account ${accountId}`);
  const action = actionOf(accountId, locked, wish);
  if (quoteId !== undefined && (await wasOrdered(transaction, accountId, quoteId, action, locked.nowMs)))
    return viewSubscription(locked.terms, locked.nowMs);
  if (quoteId !== undefined) {
    const now = quote(accountId, locked, wish, quoteId.slice(0, nonceLength));
    if (now.quoteId !== quoteId)
      throw new RequestError("price_changed", `the price has changed: ${euros(now.dueCents)} net is due now`);
  }
  const after = changeTerms(locked.terms, action, locked.nowMs, locked.book);
  const changedMs = await writeChange(transaction, accountId, locked, after);
  return viewSubscription(after, changedMs);
}

/** Returns whether the quote was ordered before; otherwise records the order. */
async function wasOrdered(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  quoteId: string,
  action: SubscriptionAction,
  nowMs: number,
): Promise<boolean> {
  const ordered = { accountId, quoteId, wish: JSON.stringify(action), orderedAt: instantText(nowMs) };
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto("orderedQuotes")
    .values(ordered)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 1n) return false;
  const before = transaction.selectFrom("orderedQuotes").select("wish").where("accountId", "=", accountId);
  const { wish: wished } = await before.where("quoteId", "=", quoteId).executeTakeFirstOrThrow();
  if (wished !== ordered.wish)
    throw new RequestError("price_changed", "the quote is for another change: request a new quote");
  return true;
}

const nonceLength = 16;

/** Makes a quote. Its id has a nonce, so that a quote is ordered once, and a hash of all that it promises. Cents are net. */
function quote(
  accountId: AccountId,
  subscription: Subscription,
  wish: SubscriptionWish,
  nonce = randomBytes(nonceLength / 2).toString("hex"),
) {
  const { terms, nowMs, book } = subscription;
  const action = actionOf(accountId, subscription, wish);
  const after = changeTerms(terms, action, nowMs, book);
  const changedMs = nowMs + 1;
  const before = new Set(chargesOf(terms, changedMs, book).map(({ startMs }) => startMs));
  const charges = chargesOf(after, changedMs, book).filter(({ startMs }) => !before.has(startMs));
  const dueCents = charges.reduce((sum, { cents }) => sum + cents, 0);
  const last = after.at(-1)!;
  // The price of the next period, for which announced terms may apply.
  const nextMs = last.startMs > changedMs ? last.startMs : periodIn(last, changedMs).endMs;
  const thenCents = last.endMs === Infinity ? termsAt(book, last.package, nextMs).priceCents : null;
  const view = viewSubscription(after, changedMs);
  const from = terms.map(({ package: name, startMs, endMs }) => [name, startMs, String(endMs)]);
  const limits = limitsOf(after, changedMs, book);
  const promised = [nonce, accountId, from, action, dueCents, thenCents, view.periodEnd, view.pending, limits];
  return {
    quoteId: nonce + hash("sha256", JSON.stringify(promised)).slice(0, 32),
    action: wish.action,
    dueCents,
    charges: charges.map(viewCharge),
    thenCents,
    withdraws: action.kind === "downgrade" || action.kind === "cancel" ? null : viewPending(pendingOf(terms, nowMs)),
    after: view,
  };
}

/** Returns the credits and limits that the account gets for the price. */
function limitsOf(terms: readonly Term[], atMs: number, book: PackageBook) {
  const current = termAt(terms, atMs);
  if (!current) return null;
  const { creditsPerMonth, requestsPerMinute, parallelRequests, emailSupport } = bookedTerms(current, atMs, book);
  return [String(creditsPerMonth), requestsPerMinute, parallelRequests, emailSupport];
}

function actionOf(
  accountId: AccountId,
  { book }: Subscription,
  { action, package: name }: SubscriptionWish,
): SubscriptionAction {
  if (action === "trial" || action === "cancel" || action === "withdraw") {
    if (name !== undefined) throw new RequestError("invalid", `${action} takes no package`);
    return { kind: action };
  }
  if (name === undefined) {
    const names = offeredTo(book, accountId).map((one) => one.name);
    throw new RequestError("invalid", `${action} needs a package: choose one of ${names.join(", ")}`);
  }
  return { kind: action, package: packageNamed(book, accountId, name) };
}

function viewCharge({ reason, package: name, startMs, endMs, days, periodDays, cents }: Charge) {
  const period = { periodStart: instantText(startMs), periodEnd: instantText(endMs) };
  return { reason, package: name, ...period, days, periodDays, amountCents: cents };
}

function viewLine(row: Selectable<Schema["invoiceLines"]>) {
  const { reason, package: name, periodStart, periodEnd, days, periodDays, amountCents } = row;
  return plainRow({ reason, package: name, periodStart, periodEnd, days, periodDays, amountCents });
}

export function euros(cents: number): string {
  return `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")} EUR`;
}
