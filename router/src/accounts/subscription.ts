/** The package that an account has booked, and the billing period it is in. */
import type { Transaction } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { billingPeriodAt, type BillingPeriod } from "./billing-period.ts";
import { findPackage, packages, type PackageName } from "./packages.ts";
import { Refused } from "./refused.ts";

export interface SubscriptionView {
  readonly package: PackageName | null;
  readonly state: "no package" | "trial" | "active";
  readonly periodStart: string | null;
  /** Exclusive: German midnight. */
  readonly periodEnd: string | null;
}

/** A booked package as its row tells it. */
export interface Term {
  readonly package: PackageName;
  readonly state: "trial" | "active";
  readonly startedAt: Temporal.Instant;
  readonly endedAt: Temporal.Instant | null;
}

export function packageNamed(name: string): PackageName {
  const known = findPackage(name);
  if (known) return known.name;
  throw new Refused("invalid", `there is no package "${name}"; there are ${Object.keys(packages).join(", ")}`);
}

/** Orders a package for an account that has none: the first billing period begins now. */
export async function orderPackage(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  name: PackageName,
  nowMs: number,
) {
  const startedAt = Temporal.Instant.fromEpochMilliseconds(nowMs);
  const term = { package: name, state: "active", startedAt, endedAt: null } as const;
  await transaction
    .insertInto("subscriptions")
    .values({ ...term, accountId, startedAt: startedAt.toString() })
    .execute();
  return term;
}

/** The billing period that `atMs` is in; undefined without a package. */
export function periodOf(terms: readonly Term[], atMs: number): (BillingPeriod & { readonly term: Term }) | undefined {
  const term = terms.find((candidate) => contains(candidate, atMs));
  if (!term) return undefined;
  const { startMs, endMs } = billingPeriodAt(term.startedAt.epochMilliseconds, atMs);
  return { startMs, endMs: Math.min(endMs, term.endedAt?.epochMilliseconds ?? Infinity), term };
}

export function viewSubscription(terms: readonly Term[], nowMs: number): SubscriptionView {
  const period = periodOf(terms, nowMs);
  if (!period) return { package: null, state: "no package", periodStart: null, periodEnd: null };
  return {
    package: period.term.package,
    state: period.term.state,
    periodStart: instantText(period.startMs),
    periodEnd: instantText(period.endMs),
  };
}

function contains({ startedAt, endedAt }: Term, atMs: number): boolean {
  return startedAt.epochMilliseconds <= atMs && atMs < (endedAt?.epochMilliseconds ?? Infinity);
}
