/** The sentences about the state of the account's credits or the user's own limit, and about what comes next. Pure. */
import type { Texts } from "../../messages/messages.ts";
import type { Credits } from "./credits-cards.tsx";

export type LeadFacts = Pick<Credits, "package" | "state" | "periodEnd" | "pending" | "forecast" | "exhaustedUntil"> & {
  readonly own: Pick<Credits["own"], "reachedUntil">;
};

export function overviewLead(credits: LeadFacts, texts: Texts): string {
  const { leads } = texts.t.overview;
  const { package: name, periodEnd } = credits;
  if (name === null || periodEnd === null) return leads.noPackage;
  return [nowText(credits, texts), nextText(credits, name, periodEnd, texts)].filter(Boolean).join(" ");
}

function nowText({ exhaustedUntil, own, forecast }: LeadFacts, { t, format }: Texts): string {
  const { leads } = t.overview;
  if (exhaustedUntil) return leads.exhausted;
  if (own.reachedUntil) return leads.ownExhausted;
  if (!forecast) return "";
  return forecast.until === null ? leads.fine : leads.short(format.dateTime(forecast.until));
}

/** A package that ends brings no new credits. */
function nextText({ state, pending }: LeadFacts, name: string, periodEnd: string, { t, format }: Texts): string {
  const { next } = t.overview;
  const lastDay = format.lastDay(pending?.at ?? periodEnd);
  if (pending?.change === "cancellation") return next.cancelled(name, lastDay);
  if (state === "trial") return next.trial(name, lastDay);
  const day = format.date(periodEnd);
  return pending ? next.downgrade(pending.package ?? t.shell.unknown, day) : next.renewal(day);
}
