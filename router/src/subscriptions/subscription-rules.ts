/**
 * The rules of packages. Pure. An account's history is a list of terms, without gaps inside a subscription. It includes
 * future changes (a downgrade, a cancellation, the end of a trial). So no job has to run when a period ends, and all past
 * and future charges follow from the terms.
 *
 *   no package ──trial──▶ trial ──its days──▶ active                  active ──upgrade──▶ active, larger, at once
 *   no package ──order──▶ active              trial ──upgrade──▶ active, in a period of its own
 *   active ──downgrade──▶ active, smaller, at the end of the period   trial, active ──cancel──▶ no package, at the end
 */
import type { PackageName } from "../db/schema.ts";
import { billingPeriodAt, germanDaysBetween, trialEndMs, type BillingPeriod } from "./billing-period.ts";
import { termsAt, versionAt, type EffectiveTerms, type PackageBook } from "./packages.ts";
import { RequestError } from "../rights/request-error.ts";

/** A package during a span of time. */
export interface Term {
  readonly package: PackageName;
  readonly state: "trial" | "active";
  readonly startMs: number;
  /** Exclusive. Infinity if no end is planned. */
  readonly endMs: number;
  /** The instant from which billing periods are counted. An upgrade or downgrade of an active package keeps it. */
  readonly rhythmMs: number;
}

export const subscriptionActions = ["trial", "order", "upgrade", "downgrade", "cancel", "withdraw"] as const;

export type SubscriptionAction =
  | { readonly kind: "trial" | "cancel" | "withdraw" }
  | { readonly kind: "order" | "upgrade" | "downgrade"; readonly package: PackageName };

/** A change at the end of the current period. It can be withdrawn until then. */
export interface Pending {
  readonly change: "cancellation" | "downgrade";
  /** null if the account will have no package. */
  readonly package: PackageName | null;
  readonly atMs: number;
}

/** A net amount, charged once at `startMs`. */
export interface Charge {
  /** `package`: a whole period. `upgrade`: the price difference for the remaining days, including the current one. */
  readonly reason: "package" | "upgrade";
  readonly package: PackageName;
  readonly startMs: number;
  readonly endMs: number;
  readonly days: number;
  readonly periodDays: number;
  readonly cents: number;
}

/** Returns the terms after the action. `nowMs` must never decrease for an account. Throws a `RequestError` with the reason. */
export function changeTerms(
  terms: readonly Term[],
  action: SubscriptionAction,
  nowMs: number,
  book: PackageBook,
): readonly Term[] {
  const current = termAt(terms, nowMs);
  if (!current) return [...terms, ...firstTerms(terms, action, nowMs, book)];
  const before = terms.slice(0, terms.indexOf(current));
  const pending = pendingOf(terms, nowMs);
  const { startMs, endMs } = periodIn(current, nowMs);
  // Strictly inside the period, so that no term is empty and only one term has the beginning of a period.
  const changeMs = Math.max(nowMs, startMs + 1);
  switch (action.kind) {
    case "trial":
      throw new RequestError("conflict", "the account has a package already");
    case "order":
      if (current.state === "active")
        throw new RequestError("conflict", `the account has ${current.package} already: upgrade or downgrade it`);
      return [...before, ...upgraded(current, action.package, changeMs, book)];
    case "upgrade":
      return [...before, ...upgraded(current, action.package, changeMs, book)];
    case "downgrade":
      if (current.state === "trial")
        throw new RequestError("conflict", "a trial cannot be downgraded; it can be cancelled");
      if (pending?.change === "cancellation")
        throw new RequestError("conflict", "the package is cancelled: withdraw the cancellation first");
      // Compares prices of the next period, because the smaller package would begin with it.
      requireStepUp(priceOf(action.package, endMs, book), priceOf(current.package, endMs, book), "downgrade");
      return [
        ...before,
        { ...current, endMs },
        { ...current, package: action.package, startMs: endMs, endMs: Infinity },
      ];
    case "cancel":
      if (pending?.change === "cancellation") throw new RequestError("conflict", "the package is cancelled already");
      return [...before, { ...current, endMs }];
    case "withdraw":
      if (!pending) throw new RequestError("conflict", "there is nothing to withdraw");
      return [
        ...before,
        ...(current.state === "trial" ? [current, active(current.package, endMs)] : [{ ...current, endMs: Infinity }]),
      ];
  }
}

/** Returns the terms after the package ends at once. Charges stay. */
export function endTerms(terms: readonly Term[], nowMs: number): readonly Term[] {
  const current = termAt(terms, nowMs);
  if (!current) return terms;
  // A term must not be empty.
  return [...terms.slice(0, terms.indexOf(current)), { ...current, endMs: Math.max(nowMs, current.startMs + 1) }];
}

/** Returns the current term; undefined without a package. */
export function termAt(terms: readonly Term[], nowMs: number): Term | undefined {
  return terms.find(({ startMs, endMs }) => startMs <= nowMs && nowMs < endMs);
}

/** Returns the billing period of a term at `atMs`. A trial is one period. */
export function periodIn({ state, startMs, endMs, rhythmMs }: Omit<Term, "package">, atMs: number): BillingPeriod {
  if (state === "trial") return { startMs, endMs };
  return billingPeriodAt(rhythmMs, atMs);
}

export function pendingOf(terms: readonly Term[], nowMs: number): Pending | undefined {
  const current = termAt(terms, nowMs);
  if (!current || current.endMs === Infinity) return undefined;
  const next = terms[terms.indexOf(current) + 1];
  if (!next) return { change: "cancellation", package: null, atMs: current.endMs };
  if (current.state === "trial") return undefined;
  return { change: "downgrade", package: next.package, atMs: current.endMs };
}

/**
 * Returns the terms booked at `atMs`: the terms that were valid when the billing period began, or when the package began
 * if it began within the period. Later terms apply from the next period on.
 */
export function bookedTerms(term: Term, atMs: number, book: PackageBook): EffectiveTerms {
  return termsAt(book, term.package, Math.max(term.startMs, periodIn(term, atMs).startMs));
}

/** Returns the versions that are booked during a term, each with its span of time. */
export function bookedSpans<V extends { readonly effectiveFromMs: number }>(
  term: Term,
  versions: readonly V[],
): readonly { readonly startMs: number; readonly endMs: number; readonly booked: V }[] {
  const later = versions.map(({ effectiveFromMs }) => effectiveFromMs).filter((ms) => ms > term.startMs);
  const nextPeriod = (atMs: number) => {
    const { startMs, endMs } = periodIn(term, atMs);
    return startMs === atMs ? startMs : endMs;
  };
  const starts = term.state === "trial" ? [] : later.filter((ms) => ms < term.endMs).map(nextPeriod);
  const all = [...new Set([term.startMs, ...starts])].filter((ms) => ms < term.endMs).toSorted((a, b) => a - b);
  return all.map((startMs, index) => ({
    startMs,
    endMs: all[index + 1] ?? term.endMs,
    booked: versionAt(versions, startMs),
  }));
}

/** Returns all charges due up to `untilMs`, inclusive, without charges of 0 cents. */
export function chargesOf(terms: readonly Term[], untilMs: number, book: PackageBook): readonly Charge[] {
  return terms.flatMap((term, index) => {
    if (term.state === "trial") return [];
    const charges: Charge[] = [];
    for (let atMs = term.startMs; atMs < term.endMs && atMs <= untilMs;) {
      const period = periodIn(term, atMs);
      const replaced = atMs === period.startMs ? undefined : terms[index - 1]!;
      charges.push(chargeFor(term, replaced, atMs, period, book));
      atMs = period.endMs;
    }
    return charges.filter(({ cents }) => cents > 0);
  });
}

/** Returns when the next charge is due if nothing changes; undefined if no charge will be due. */
export function nextChargeMs(terms: readonly Term[], nowMs: number): number | undefined {
  const current = termAt(terms, nowMs);
  if (!current) return undefined;
  const { endMs } = periodIn(current, nowMs);
  return terms.some((term) => term.startMs <= endMs && endMs < term.endMs) ? endMs : undefined;
}

function firstTerms(
  terms: readonly Term[],
  action: SubscriptionAction,
  nowMs: number,
  book: PackageBook,
): readonly Term[] {
  if (action.kind === "order") return [active(action.package, nowMs)];
  if (action.kind !== "trial") throw new RequestError("conflict", "the account has no package");
  if (terms.some(({ state }) => state === "trial"))
    throw new RequestError("conflict", "the account had its trial already");
  const ofTrial = [...book.values()].find(({ isListed, hasTrial }) => isListed && hasTrial);
  if (!ofTrial) throw new RequestError("conflict", "no package has a trial");
  const endMs = trialEndMs(nowMs, termsAt(book, ofTrial.name, nowMs).trialDays);
  const trial: Term = { package: ofTrial.name, state: "trial", startMs: nowMs, endMs, rhythmMs: nowMs };
  return [trial, active(ofTrial.name, endMs)];
}

/** Returns the terms of an upgrade. It ends the period of a trial; the period of an active package continues. */
function upgraded(current: Term, name: PackageName, atMs: number, book: PackageBook): readonly Term[] {
  requireStepUp(
    { name: current.package, cents: bookedTerms(current, atMs, book).priceCents },
    priceOf(name, atMs, book),
    "upgrade",
  );
  const ended = { ...current, endMs: atMs };
  if (current.state === "trial") return [ended, active(name, atMs)];
  return [ended, { ...current, package: name, startMs: atMs, endMs: Infinity }];
}

function active(name: PackageName, startMs: number): Term {
  return { package: name, state: "active", startMs, endMs: Infinity, rhythmMs: startMs };
}

interface Priced {
  readonly name: PackageName;
  readonly cents: number;
}

function priceOf(name: PackageName, atMs: number, book: PackageBook): Priced {
  return { name, cents: termsAt(book, name, atMs).priceCents };
}

function requireStepUp(smaller: Priced, larger: Priced, change: "upgrade" | "downgrade"): void {
  if (smaller.cents < larger.cents) return;
  const [from, to] = change === "upgrade" ? [smaller, larger] : [larger, smaller];
  throw new RequestError(
    "conflict",
    `${from.name} to ${to.name} is not ${change === "upgrade" ? "an" : "a"} ${change}`,
  );
}

function chargeFor(
  term: Term,
  replaced: Term | undefined,
  startMs: number,
  period: BillingPeriod,
  book: PackageBook,
): Charge {
  const periodDays = germanDaysBetween(period.startMs, period.endMs);
  const days = germanDaysBetween(startMs, period.endMs);
  const before = replaced ? bookedTerms(replaced, startMs - 1, book).priceCents : 0;
  const price = bookedTerms(term, startMs, book).priceCents - before;
  return {
    reason: replaced ? "upgrade" : "package",
    package: term.package,
    startMs,
    endMs: period.endMs,
    days,
    periodDays,
    cents: replaced ? Math.floor((2 * price * days + periodDays) / (2 * periodDays)) : price,
  };
}

/** Returns the actions that are allowed now, for these packages. */
export function packageChoices(
  terms: readonly Term[],
  nowMs: number,
  book: PackageBook,
  names: readonly PackageName[],
) {
  const isPossible = (action: SubscriptionAction) => {
    try {
      changeTerms(terms, action, nowMs, book);
      return true;
    } catch (error) {
      if (error instanceof RequestError) return false;
      throw error;
    }
  };
  const to = names.map((name) => {
    const kinds = ["order", "upgrade", "downgrade"] as const;
    return [name, kinds.filter((kind) => isPossible({ kind, package: name }))] as const;
  });
  return {
    /** Possible actions for each package. */
    to: new Map(to),
    /** Possible actions that take no package. */
    alone: (["trial", "cancel", "withdraw"] as const).filter((kind) => isPossible({ kind })),
  };
}
