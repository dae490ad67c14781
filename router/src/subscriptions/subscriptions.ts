/**
 * Changes of an account's package by its Owner. A preview returns what a change costs now, and a quote id. A change
 * with that id charges exactly this price, once however often it is sent, or is refused because the price has changed.
 */
import { hash, randomBytes } from "node:crypto";
import type { Selectable, Transaction } from "kysely";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { inTransaction, instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { ActingContext } from "../rights/accounts-context.ts";
import { audited } from "../rights/audit-log.ts";
import { packages } from "./packages.ts";
import { Refused } from "../rights/refused.ts";
import { plainRow } from "../rights/plain-row.ts";
import { requireRight } from "../rights/rights.ts";
import { writeChange, writeCharges } from "./subscription-change.ts";
import {
  changeTerms,
  chargesOf,
  pendingOf,
  type Charge,
  type SubscriptionAction,
  type Term,
} from "./subscription-rules.ts";
import {
  packageNamed,
  readSubscription,
  viewPending,
  viewSubscription,
  type SubscriptionView,
} from "./subscription.ts";

interface SubscriptionWish {
  readonly action: SubscriptionAction["kind"];
  /** Its name in any case; required for an order, an upgrade or a downgrade. */
  readonly package?: string;
}

export type Subscriptions = ReturnType<typeof createSubscriptions>;

export function createSubscriptions(context: ActingContext) {
  const { database, clock } = context;
  const { kysely } = database;

  return {
    async preview(accountId: AccountId, wish: SubscriptionWish) {
      const { terms, nowMs } = await readSubscription(kysely, accountId, clock.now());
      return quote(accountId, terms, wish, nowMs);
    },

    /** What the first order of a new account costs. The price is net. */
    previewFirst(packageName: string) {
      const wish = { action: "order", package: packageName } as const;
      const { dueCents, thenCents, after } = quote(asId<AccountId>(""), [], wish, clock.now());
      return { package: after.package!, dueCents, thenCents };
    },

    /** Charges the price of the quote, or the current one without a quote. */
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
          // Lock order: the account, then its users, as in the evaluation of usage.
          await readSubscription(transaction, accountId, clock.now(), "locked");
          await requireRight(context, transaction, object, ({ role }) => role === "owner");
          return changePackage(transaction, accountId, wish, clock.now(), quoteId);
        },
      ),

    /** Oldest first. */
    async invoice(accountId: AccountId) {
      await readSubscription(kysely, accountId, clock.now()); // throws if there is no such account
      const lines = kysely.selectFrom("invoiceLines").selectAll().where("accountId", "=", accountId);
      return (await lines.orderBy("periodStart").execute()).map(viewLine);
    },

    /**
     * Writes the invoice lines of periods that have begun. Returns the number of accounts; tries all of them before it
     * throws. Any router may call it at any time.
     */
    async chargeWhatIsDue(): Promise<number> {
      const { rows } = await database.pool.query<{ id: AccountId }>(
        "select id from accounts where next_charge_at <= $1 order by next_charge_at",
        [instantText(clock.now())],
      );
      const failures: unknown[] = [];
      for (const { id } of rows)
        await inTransaction(database, async (transaction) => {
          const { terms, nowMs } = await readSubscription(transaction, id, clock.now(), "locked");
          await writeCharges(transaction, id, terms, nowMs);
        }).catch((error: unknown) => failures.push(error)); // must not delay the other accounts
      if (failures.length > 0) throw failures[0];
      return rows.length;
    },
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
  if (locked.isDeleted) throw new Refused("not_found", `there is no account ${accountId}`);
  if (quoteId !== undefined && (await wasOrdered(transaction, accountId, quoteId, wish, locked.nowMs)))
    return viewSubscription(locked.terms, locked.nowMs);
  if (quoteId !== undefined) {
    const now = quote(accountId, locked.terms, wish, locked.nowMs, quoteId.slice(0, nonceLength));
    if (now.quoteId !== quoteId)
      throw new Refused("price_changed", `the price has changed: now ${euros(now.dueCents)} net are due`);
  }
  const after = changeTerms(locked.terms, actionOf(wish), locked.nowMs);
  const changedMs = await writeChange(transaction, accountId, locked, after);
  return viewSubscription(after, changedMs);
}

/** Returns whether the quote was ordered before; otherwise records the order. */
async function wasOrdered(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  quoteId: string,
  wish: SubscriptionWish,
  nowMs: number,
): Promise<boolean> {
  const ordered = { accountId, quoteId, wish: JSON.stringify(actionOf(wish)), orderedAt: instantText(nowMs) };
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto("orderedQuotes")
    .values(ordered)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 1n) return false;
  const before = transaction.selectFrom("orderedQuotes").select("wish").where("accountId", "=", accountId);
  const { wish: wished } = await before.where("quoteId", "=", quoteId).executeTakeFirstOrThrow();
  if (wished !== ordered.wish) throw new Refused("price_changed", "the quote was for something else");
  return true;
}

const nonceLength = 16;

/** The quote id is a nonce, so that each is ordered once, and a hash of everything that the quote promises. Cents are net. */
function quote(
  accountId: AccountId,
  terms: readonly Term[],
  wish: SubscriptionWish,
  nowMs: number,
  nonce = randomBytes(nonceLength / 2).toString("hex"),
) {
  const action = actionOf(wish);
  const after = changeTerms(terms, action, nowMs);
  const changedMs = nowMs + 1;
  const before = new Set(chargesOf(terms, changedMs).map(({ startMs }) => startMs));
  const charges = chargesOf(after, changedMs).filter(({ startMs }) => !before.has(startMs));
  const dueCents = charges.reduce((sum, { cents }) => sum + cents, 0);
  const last = after.at(-1)!;
  const thenCents = last.endMs === Infinity ? packages[last.package].priceCents : null;
  const view = viewSubscription(after, changedMs);
  const from = terms.map(({ package: name, startMs, endMs }) => [name, startMs, String(endMs)]);
  const promised = [nonce, accountId, from, action, dueCents, thenCents, view.periodEnd, view.pending];
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

function actionOf({ action, package: name }: SubscriptionWish): SubscriptionAction {
  if (action === "trial" || action === "cancel" || action === "withdraw") {
    if (name !== undefined) throw new Refused("invalid", `${action} takes no package`);
    return { kind: action };
  }
  if (name === undefined)
    throw new Refused("invalid", `${action} which package? there are ${Object.keys(packages).join(", ")}`);
  return { kind: action, package: packageNamed(name) };
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
