import { expect, test } from "vitest";
import { de } from "./de.ts";
import { en } from "./en.ts";
import { createFormat } from "./format.ts";
import { noticeText, type Notice } from "./notice-text.ts";

const texts = {
  de: { t: de, format: createFormat("de") },
  en: { t: en, format: createFormat("en") },
};
const sentence = (language: "de" | "en", kind: string, facts: object) =>
  noticeText({ kind, facts, user: null, key: null } as unknown as Notice, texts[language]);

const fewerTokens = { model: "small-24b", from: "2.000", to: "2.000" };
const coming = [{ validFrom: "2026-12-04T23:00:00Z", factor: "1.500" }];

test("a factor's notice has the current factor and all announced ones, or that announced ones were withdrawn", () => {
  expect(sentence("en", "model-factor", { ...fewerTokens, coming })).toBe(
    "Credit factor of small-24b becomes 1.5 on 5 Dec 2026, 00:00.",
  );
  expect(sentence("de", "model-factor", { ...fewerTokens, to: "1.750", coming })).toBe(
    "Der Credit-Faktor von small-24b wechselte von 2 zu 1,75. Ab 05.12.2026, 00:00 ist der Credit-Faktor von small-24b 1,5.",
  );
  expect(sentence("en", "model-factor", { ...fewerTokens, coming: [] })).toBe(
    "Credit factor of small-24b stays at 2: the announced change does not come.",
  );
});

test("a notice about package terms lists them, or reports that they were withdrawn", () => {
  const limits = { creditsPerMonth: "80000000.000", requestsPerMinute: 60, parallelRequests: 10 };
  const now = { priceCents: 3_500, ...limits, emailSupport: true };
  const facts = { package: "Pro", at: "2026-12-04T23:00:00Z", from: now };
  const to = { ...now, priceCents: 4_000, parallelRequests: 12, emailSupport: false };
  expect(sentence("en", "package-terms", { ...facts, to })).toBe(
    "Pro from 5 Dec 2026: €40.00 net a month, 80M credits, 60 requests per minute, 12 in parallel, without e-mail support. Running periods stay as they are.",
  );
  expect(sentence("de", "package-terms", { ...facts, to: null })).toBe(
    "Pro bleibt, wie es ist: 35,00\u00a0€ netto im Monat, 80\u00a0Mio. Credits, 60 Anfragen je Minute, 10 gleichzeitig, mit E-Mail-Support. Die Ankündigung für 05.12.2026 entfällt.",
  );
});

test("a changelog entry is shown in the reader's language, with the changes of its models", () => {
  const text = { de: "Der Faktor sinkt.", en: "The factor goes down." };
  const news = [{ kind: "model-factor", facts: { ...fewerTokens, coming } }];
  expect(sentence("en", "model-change", { at: coming[0]!.validFrom, text, news: [] })).toBe(
    "5 Dec 2026: The factor goes down.",
  );
  expect(sentence("de", "model-change", { at: coming[0]!.validFrom, text, news })).toBe(
    "05.12.2026: Der Faktor sinkt. Ab 05.12.2026, 00:00 ist der Credit-Faktor von small-24b 1,5.",
  );
});

test("a status is told in the reader's language", () => {
  const facts = { model: "small-24b", from: "Demnächst", to: "Verfügbar" };
  expect(sentence("en", "model-status", facts)).toBe("Model small-24b changed from announced to available.");
  expect(sentence("de", "model-status", { ...facts, from: null })).toBe("Das Modell small-24b ist da: Verfügbar.");
});

test("notices say what follows and until when", () => {
  const periodEnd = "2026-12-25T23:00:00Z";
  expect(sentence("en", "quota-75", { package: "Pro", periodEnd })).toBe(
    "75% of your credits are used; they renew on 26 Dec 2026.",
  );
  expect(sentence("de", "quota-100", { package: "Pro", periodEnd })).toBe(
    "Ihre Credits sind verbraucht; Aufrufe erhalten 429 bis 26.12.2026.",
  );
  expect(sentence("en", "key-expiring", { expiresAt: "2026-11-30T23:00:00Z" })).toBe(
    "Key “–” works until 30 Nov 2026; after that its calls get 401.",
  );
});
