import { expect, test } from "vitest";
import { loadTexts } from "../../messages/messages.ts";
import { overviewLead, type LeadFacts } from "./overview-lead.ts";

const [de, en] = [await loadTexts("de"), await loadTexts("en")];
const facts: LeadFacts = {
  package: "Pro",
  state: "active",
  periodEnd: "2026-12-25T23:00:00Z",
  pending: null,
  forecast: { perDay: "1.000", until: null },
  exhaustedUntil: null,
  own: { reachedUntil: null },
};
const lead = (more: Partial<LeadFacts>, texts = en) => overviewLead({ ...facts, ...more }, texts);
const cancelled = { change: "cancellation", package: null, at: "2026-12-25T23:00:00Z" } as const;

test("the overview says how long credits last, and when new ones come", () => {
  expect(lead({})).toBe("At this pace your credits last. New credits come on 26 Dec 2026.");
  expect(lead({ forecast: null }, de)).toBe("Neue Credits gibt es am 26.12.2026.");
  expect(lead({ forecast: { perDay: "1.000", until: "2026-12-09T11:00:00Z" } })).toBe(
    "At this pace your credits last until 9 Dec 2026, 12:00. New credits come on 26 Dec 2026.",
  );
  expect(lead({ exhaustedUntil: "2026-12-25T23:00:00Z" })).toBe(
    "Your credits are used up: the API answers 429. New credits come on 26 Dec 2026.",
  );
});

test("a cancelled package, also a cancelled trial, promises no new credits", () => {
  const last = "At this pace your credits last. Pro is cancelled and ends after 25 Dec 2026.";
  expect([lead({ pending: cancelled }), lead({ pending: cancelled, state: "trial" })]).toEqual([last, last]);
});

test("a trial says when it ends and what comes then, and a downgrade its day", () => {
  expect(lead({ forecast: null, state: "trial" }, de)).toBe(
    "Ihr Pro-Test läuft bis 25.12.2026. Danach wird das Paket berechnet, wenn Sie nicht kündigen.",
  );
  expect(lead({ forecast: null, pending: { change: "downgrade", package: "Starter", at: cancelled.at } })).toBe(
    "On 26 Dec 2026 your package changes to Starter.",
  );
});
