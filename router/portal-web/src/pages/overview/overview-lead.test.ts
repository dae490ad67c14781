import { expect, test } from "vitest";
import { loadTexts } from "../../messages/messages.ts";
import { overviewLead, pendingText, type LeadFacts } from "./overview-lead.ts";

const [de, en] = [await loadTexts("de"), await loadTexts("en")];
const facts: LeadFacts = {
  package: "Pro",
  state: "active",
  asOf: "2026-12-01T09:00:00Z",
  periodEnd: "2026-12-25T23:00:00Z",
  pending: null,
  forecast: { until: null },
  exhaustedUntil: null,
  own: { reachedUntil: null },
};
const lead = (more: Partial<LeadFacts>, texts = en) => overviewLead({ ...facts, ...more }, texts);
const pending = (more: Partial<LeadFacts>, texts = en) => pendingText({ ...facts, ...more }, texts);
const cancelled = { change: "cancellation", package: null, at: "2026-12-25T23:00:00Z" } as const;

test("the overview says how long credits last, and when new ones come", () => {
  expect(lead({})).toBe("At this pace your credits last. New credits come on 26 Dec 2026.");
  expect(lead({ forecast: null }, de)).toBe("Neue Credits gibt es am 26.12.2026.");
  expect(lead({ forecast: { until: "2026-12-09T11:00:00Z" } })).toBe(
    "At this pace your credits last until 9 Dec 2026, 12:00. New credits come on 26 Dec 2026.",
  );
  expect(lead({ exhaustedUntil: "2026-12-25T23:00:00Z" })).toBe(
    "Your credits are used up: the API answers 429. New credits come on 26 Dec 2026.",
  );
});

test("a package that ends promises no new credits, and says how many days are left", () => {
  const lasts = "At this pace your credits last.";
  const ends = "Pro is cancelled: 25 days left, until 25 Dec 2026.";
  for (const state of ["active", "trial"] as const)
    expect([lead({ pending: cancelled, state }), pending({ pending: cancelled, state })]).toEqual([lasts, ends]);
  expect(pending({ pending: cancelled, asOf: "2026-12-25T22:59:00Z" })).toContain("1 day left");
});

test("a trial says how long it lasts and what comes then, and a downgrade its day", () => {
  expect(pending({ state: "trial" }, de)).toBe(
    "Test von Pro: noch 25 Tage, bis 25.12.2026. Danach kostet das Paket Geld, wenn Sie nicht kündigen.",
  );
  expect(pending({ pending: { change: "downgrade", package: "Starter", at: cancelled.at } })).toBe(
    "Your package changes to Starter on 26 Dec 2026, in 25 days.",
  );
  expect(pending({})).toBe("");
});
