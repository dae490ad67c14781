/** An account's subscription: read from its rows, and as API and portal show it. */
import type { Kysely, Selectable } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema, PackageName } from "../db/schema.ts";
import type { BillingPeriod } from "./billing-period.ts";
import { findPackage, packages } from "./packages.ts";
import { found, Refused } from "../rights/refused.ts";
import { pendingOf, periodIn, termAt, type Pending, type Term } from "./subscription-rules.ts";

export interface SubscriptionView {
  readonly package: PackageName | null;
  readonly state: "no package" | "trial" | "active";
  readonly periodStart: string | null;
  /** Exclusive: German midnight. */
  readonly periodEnd: string | null;
  /** The change at the end of the period unless it is withdrawn. */
  readonly pending: {
    readonly change: "cancellation" | "downgrade";
    readonly package: PackageName | null;
    readonly at: string;
  } | null;
}

export interface Subscription {
  /** Oldest first. */
  readonly terms: readonly Term[];
  /** The current time, but never before the last change or charge, which a router with a faster clock may have made. */
  readonly nowMs: number;
  /** A deleted account takes no changes. */
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
  return {
    terms: (await rows.execute()).map(toTerm),
    nowMs: Math.max(clockMs, changedMs),
    isDeleted: deletedAt !== null,
  };
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

export function packageNamed(name: string): PackageName {
  const known = findPackage(name);
  if (known) return known.name;
  throw new Refused("invalid", `there is no package "${name}"; there are ${Object.keys(packages).join(", ")}`);
}

/** The billing period that contains `atMs`; undefined without a package. */
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
