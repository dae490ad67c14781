/** The sentences about the state of the account's credits or the user's own limit, and about what comes next. Pure. */
import type { Answer } from "../../api/client.ts";
import type { Texts } from "../../messages/messages.ts";
import { daysLeft } from "../../time/german-day.ts";

export type Credits = Answer<"showCredits">;
export type LeadFacts = Pick<Credits, "package" | "periodEnd" | "exhaustedUntil"> &
  PendingFacts & {
    readonly forecast: Pick<NonNullable<Credits["forecast"]>, "until"> | null;
    readonly own: Pick<Credits["own"], "reachedUntil">;
  };
type PendingFacts = Pick<Credits, "package" | "state" | "periodEnd" | "pending" | "asOf">;

export function overviewLead(credits: LeadFacts, texts: Texts): string {
  const { leads } = texts.t.overview;
  const { package: name, periodEnd } = credits;
  if (name === null || periodEnd === null) return leads.noPackage;
  // A package that ends brings no new credits.
  const isRenewed = !pendingText(credits, texts);
  const renewal = isRenewed && texts.t.overview.next.renewal(texts.format.date(periodEnd));
  return [nowText(credits, texts), renewal].filter(Boolean).join(" ");
}

function nowText({ exhaustedUntil, own, forecast }: LeadFacts, { t, format }: Texts): string {
  const { leads } = t.overview;
  if (exhaustedUntil) return leads.exhausted;
  if (own.reachedUntil) return leads.ownExhausted;
  if (!forecast) return "";
  return forecast.until === null ? leads.fine : leads.short(format.dateTime(forecast.until));
}

/** Says what happens to the package at the end of the period, with the days left; "" if it simply goes on. */
export function pendingText(
  { package: name, state, periodEnd, pending, asOf }: PendingFacts,
  { t, format }: Texts,
): string {
  const end = pending?.at ?? periodEnd;
  if (name === null || end === null) return "";
  const { next } = t.overview;
  const left = format.days(daysLeft(end, Date.parse(asOf)));
  if (pending?.change === "cancellation") return next.cancelled(name, format.lastDay(end), left);
  if (state === "trial") return next.trial(name, format.lastDay(end), left);
  return pending ? next.downgrade(pending.package ?? t.shell.unknown, format.date(end), left) : "";
}
