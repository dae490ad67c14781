/** Makes the sentence about the state of the account or the user's own limit. Pure. */
import type { Answer } from "../../api/client.ts";
import type { Texts } from "../../messages/messages.ts";

export function overviewLead(credits: Answer<"showCredits">, { t, format }: Texts): string {
  const { leads } = t.overview;
  const { periodEnd, forecast, exhaustedUntil, own } = credits;
  if (credits.package === null || periodEnd === null) return leads.noPackage;
  if (exhaustedUntil) return leads.exhausted(format.dateTime(exhaustedUntil));
  if (own.reachedUntil) return leads.ownExhausted(format.dateTime(own.reachedUntil));
  if (!forecast) return leads.unknown(format.date(periodEnd));
  if (forecast.until === null) return leads.fine(format.date(periodEnd));
  return leads.short(format.dateTime(forecast.until), format.date(periodEnd));
}
