/** Reads an account's subscription from its rows, and converts it for API and portal. */
import type { Kysely, Selectable } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema, PackageName } from "../db/schema.ts";
import type { BillingPeriod } from "./billing-period.ts";
import { offeredTo, readPackages, type PackageBook } from "./packages.ts";
import { found, RequestError } from "../rights/request-error.ts";
import { pendingOf, periodIn, termAt, type Pending, type Term } from "./subscription-rules.ts";

export interface SubscriptionView {
  readonly package: PackageName | null;
  readonly state: "no package" | "trial" | "active";
  readonly periodStart: string | null;
  /** Exclusive: German midnight. */
  readonly periodEnd: string | null;
  /** The change at the end of the period, unless it is withdrawn. */
  readonly pending: {
    readonly change: "cancellation" | "downgrade";
    readonly package: PackageName | null;
    readonly at: string;
  } | null;
}

export interface Subscription {
  /** Oldest first. */
  readonly terms: readonly Term[];
  /** The current time, but never before the last change or charge: a router with a faster clock may have made it. */
  readonly nowMs: number;
  /** Every current and former package, with all versions of its terms. */
  readonly book: PackageBook;
  /** A deleted account refuses changes. */
  readonly isDeleted: boolean;
}

/** `locked`: locks the account until the transaction ends; rows that reference it can still be added. */
export async function readSubscription(
  kysely: Kysely<Schema>,
  accountId: AccountId,
  clockMs: number,
  locked: "locked" | "unlocked" = "unlocked",
): Promise<Subscription> {
  const account = kysely.selectFrom("accounts").select(["packageChangedAt", "deletedAt"]).where("id", "=", accountId);
  const row = await (locked === "locked" ? account.forNoKeyUpdate() : account).executeTakeFirst();
  const { packageChangedAt, deletedAt } = found(row, "account", accountId);
  const changedMs = packageChangedAt?.epochMilliseconds ?? -Infinity;
  const rows = kysely.selectFrom("subscriptions").selectAll().where("accountId", "=", accountId).orderBy("startedAt");
  const terms = (await rows.execute()).map(toTerm);
  const book = await readPackages(kysely);
  return { terms, nowMs: Math.max(clockMs, changedMs), book, isDeleted: deletedAt !== null };
}

export function toTerm(row: Selectable<Schema["subscriptions"]>): Term {
  return {
    package: row.package,
    state: row.state,
    startMs: row.startedAt.epochMilliseconds,
    endMs: row.endedAt?.epochMilliseconds ?? Infinity,
    rhythmMs: (row.rhythmFrom ?? row.startedAt).epochMilliseconds,
  };
}

/** Finds a package that the account may order, by its name in any case. Throws a `RequestError` if there is none. */
export function packageNamed(book: PackageBook, accountId: AccountId, name: string): PackageName {
  const offered = offeredTo(book, accountId).map((one) => one.name);
  const known = offered.find((one) => one.toLowerCase() === name.trim().toLowerCase());
  if (known !== undefined) return known;
  const details = [{ param: "package", code: "not_allowed" }];
  throw new RequestError("invalid", `there is no package "${name}"; choose one of ${offered.join(", ")}`, { details });
}

/** Returns the billing period that contains `atMs`; undefined without a package. */
export function periodOf(terms: readonly Term[], atMs: number): (BillingPeriod & { readonly term: Term }) | undefined {
  const term = termAt(terms, atMs);
  return term && { ...periodIn(term, atMs), term };
}

export function viewSubscription(terms: readonly Term[], nowMs: number): SubscriptionView {
  const period = periodOf(terms, nowMs);
  if (!period) return { package: null, state: "no package", periodStart: null, periodEnd: null, pending: null };
  return {
    package: period.term.package,
    state: period.term.state,
    periodStart: instantText(period.startMs),
    periodEnd: instantText(period.endMs),
    pending: viewPending(pendingOf(terms, nowMs)),
  };
}

export function viewPending(pending: Pending | undefined): SubscriptionView["pending"] {
  return pending ? { change: pending.change, package: pending.package, at: instantText(pending.atMs) } : null;
}
