/** The sentence of a notice. */
import type { Answer } from "../api/client.ts";
import type { Language } from "./format.ts";
import type { Texts } from "./messages.ts";

export type Notice = Answer<"listNotices">["items"][number];

/** The contract's types tell the facts of one kind from those of another at runtime only. */
type Facts =
  | {
      readonly kind: "quota-75" | "quota-90" | "quota-100";
      readonly facts: { readonly periodEnd: string };
    }
  | {
      readonly kind: "key-limit" | "user-limit";
      readonly facts: { readonly limit: string; readonly periodEnd: string };
    }
  | { readonly kind: "key-expiring"; readonly facts: { readonly expiresAt: string } }
  | { readonly kind: "package-ending"; readonly facts: { readonly endsAt: string; readonly package: string } }
  | { readonly kind: "trial-ending"; readonly facts: { readonly endsAt: string } }
  | {
      readonly kind: "package-terms";
      readonly facts: {
        readonly package: string;
        readonly at: string;
        readonly from: PackageTerms;
        /** null: announced before, and withdrawn. */
        readonly to: PackageTerms | null;
      };
    }
  | ModelNews
  | {
      readonly kind: "model-change";
      readonly facts: {
        readonly at: string;
        readonly text: Readonly<Record<Language, string>>;
        /** The changes of these models at the same time. */
        readonly news: readonly ModelNews[];
      };
    };

interface PackageTerms {
  readonly priceCents: number;
  readonly creditsPerMonth: string;
  readonly requestsPerMinute: number;
  readonly parallelRequests: number;
  readonly emailSupport: boolean;
}

type ModelNews =
  | {
      readonly kind: "model-status";
      readonly facts: { readonly model: string; readonly from: string | null; readonly to: string | null };
    }
  | {
      readonly kind: "model-factor";
      readonly facts: {
        readonly model: string;
        readonly from: string;
        readonly to: string;
        readonly coming: readonly { readonly validFrom: string; readonly factor: string }[];
      };
    };

export function noticeText(notice: Notice, texts: Texts): string {
  const { t, format } = texts;
  const { notices, shell } = t;
  const { kind, facts } = notice as Facts;
  const key = notices.named(notice.key?.name ?? shell.unknown);
  switch (kind) {
    case "quota-75":
    case "quota-90":
      return notices.quota(format.percent(Number(kind.slice("quota-".length)) / 100), format.date(facts.periodEnd));
    case "quota-100":
      return notices.usedUp(format.date(facts.periodEnd));
    case "key-limit":
      return notices.keyLimit(key, format.number(facts.limit), format.date(facts.periodEnd));
    case "user-limit": {
      const user = notice.user?.email ?? shell.unknown;
      return notices.userLimit(user, format.number(facts.limit), format.date(facts.periodEnd));
    }
    case "key-expiring":
      return notices.keyExpiring(key, format.lastMoment(facts.expiresAt));
    case "trial-ending":
      return notices.trialEnding(format.lastDay(facts.endsAt));
    case "package-ending":
      return notices.packageEnding(facts.package, format.lastDay(facts.endsAt));
    case "package-terms": {
      const { package: name, at, from, to } = facts;
      if (to === null) return notices.termsStay(name, format.date(at), termsText(from, texts));
      return notices.terms(name, format.date(at), termsText(to, texts));
    }
    case "model-change": {
      const words = `${format.date(facts.at)}: ${facts.text[format.language]}`;
      return [words, ...facts.news.map((news) => modelNewsText(news, texts))].join(" ");
    }
    case "model-status":
    case "model-factor":
      return modelNewsText({ kind, facts } as ModelNews, texts);
  }
}

export function termsText(terms: PackageTerms, { t: { notices }, format }: Texts): string {
  return notices.termsText(
    format.euros(terms.priceCents),
    format.short(terms.creditsPerMonth),
    format.number(terms.requestsPerMinute),
    format.number(terms.parallelRequests),
    terms.emailSupport,
  );
}

function modelNewsText({ kind, facts }: ModelNews, { t: { models, notices }, format }: Texts): string {
  if (kind === "model-status") {
    // The catalogue writes them in German.
    const statuses: Readonly<Record<string, string>> = models.statuses;
    const { model } = facts;
    const [from, to] = [facts.from, facts.to].map((status) => status && (statuses[status] ?? status));
    if (!to) return notices.modelGone(model);
    return from ? notices.modelStatus(model, from, to) : notices.modelNew(model, to);
  }
  const { model, from, to, coming } = facts;
  const sentences = coming.map(({ factor, validFrom }) =>
    notices.factorComing(model, format.number(factor), format.dateTime(validFrom)),
  );
  if (from !== to) sentences.unshift(notices.factor(model, format.number(from), format.number(to)));
  return sentences.length > 0 ? sentences.join(" ") : notices.factorStays(model, format.number(to));
}
