/** Texts of mails about notices and about sign-ins from new places. Pure. */
import { formatDay, formatDayTime, inLanguage, type Letter } from "./letters.ts";
import type { Language } from "../db/schema.ts";
import type { MailTopic } from "./mail-topics.ts";

/** The notices that are mailed, each with its topic. */
export const topicOf = {
  "quota-75": "quota",
  "quota-90": "quota",
  "quota-100": "quota",
  "key-limit": "limits",
  "user-limit": "limits",
  "key-expiring": "keys",
  "trial-ending": "package",
  "package-ending": "package",
} as const satisfies Readonly<Record<string, MailTopic>>;
export type MailedKind = keyof typeof topicOf;

interface NoticeFacts {
  readonly kind: MailedKind;
  /** When calls are admitted again, or what the notice is about ends. */
  readonly atMs: number;
  readonly accountName: string;
  readonly keyName: string | null;
  readonly portalUrl: string;
}

export function noticeLetter(language: Language | null, facts: NoticeFacts): Letter {
  const { accountName, portalUrl } = facts;
  return {
    kind: "notice",
    ...inLanguage(language, (one) => {
      const [subject, text, path] = sentences[one](facts);
      return {
        subject: `${accountName}: ${subject}`,
        text: frame[one](text, `${portalUrl}${path}`, `${portalUrl}/account`),
      };
    }),
  };
}

interface SignInFacts {
  readonly atMs: number;
  readonly source: string;
  readonly agent: string;
  readonly portalUrl: string;
}

export function signInLetter(language: Language | null, { atMs, source, agent, portalUrl }: SignInFacts): Letter {
  const from = agent === "" ? source : `${source} (${agent})`;
  const account = `${portalUrl}/account`;
  const words = {
    de: {
      subject: "Anmeldung von einem neuen Ort",
      text: frame.de(
        `Jemand hat sich am ${formatDayTime("de", atMs)} mit Ihrem Passwort angemeldet, von ${from}. Waren Sie es nicht, ändern Sie jetzt Ihr Passwort: Das beendet alle anderen Sitzungen.`,
        account,
        account,
      ),
    },
    en: {
      subject: "Sign-in from a new place",
      text: frame.en(
        `Somebody signed in with your password on ${formatDayTime("en", atMs)}, from ${from}. If it was not you, change your password now: this ends all other sessions.`,
        account,
        account,
      ),
    },
  };
  return { kind: "sign-in", ...inLanguage(language, (one) => words[one]) };
}

const frame = {
  de: (text: string, url: string, settings: string) =>
    `Guten Tag,\n\n${text}\n\n${url}\n\nWelche E-Mails Sie erhalten, stellen Sie hier ein: ${settings}`,
  en: (text: string, url: string, settings: string) =>
    `Hello,\n\n${text}\n\n${url}\n\nChoose which mails you get: ${settings}`,
};

type Sentence = readonly [subject: string, text: string, path: string];

const sentences: Readonly<Record<Language, (facts: NoticeFacts) => Sentence>> = {
  de: ({ kind, atMs, keyName }) => {
    const day = formatDay("de", atMs);
    const key = `„${keyName ?? "–"}“`;
    const quota = (percent: number): Sentence => [
      `${percent} % der Credits verbraucht`,
      `${percent} % der Credits Ihres Kontos sind verbraucht; neue gibt es am ${day}.`,
      "/package",
    ];
    const all: Readonly<Record<MailedKind, () => Sentence>> = {
      "quota-75": () => quota(75),
      "quota-90": () => quota(90),
      "quota-100": () => [
        "Credits verbraucht",
        `Die Credits Ihres Kontos sind verbraucht; Aufrufe erhalten 429 bis ${day}. Ein Owner kann das Paket hochstufen.`,
        "/package",
      ],
      "key-limit": () => [
        `Limit des Schlüssels ${key} erreicht`,
        `Ihr Schlüssel ${key} hat sein Limit erreicht; Aufrufe damit erhalten 401 bis ${day}.`,
        "/keys",
      ],
      "user-limit": () => [
        "Ihr Limit ist erreicht",
        `Sie haben Ihr eigenes Limit erreicht; Ihre Aufrufe erhalten 401 bis ${day}. Ein Admin oder Owner kann es erhöhen.`,
        "/",
      ],
      "key-expiring": () => [
        `Schlüssel ${key} läuft ab`,
        `Ihr Schlüssel ${key} gilt bis ${formatDayTime("de", atMs)}; danach erhalten Aufrufe damit 401.`,
        "/keys",
      ],
      "trial-ending": () => [
        "Ihr Test endet",
        `Der Test Ihres Kontos endet am ${formatDay("de", atMs - 1)}. Wenn Sie nicht gekündigt haben, kostet das Paket danach Geld.`,
        "/package",
      ],
      "package-ending": () => [
        "Ihr Paket endet",
        `Ihr gekündigtes Paket endet am ${formatDay("de", atMs - 1)}; danach erhalten Aufrufe 403.`,
        "/package",
      ],
    };
    return all[kind]();
  },
  en: ({ kind, atMs, keyName }) => {
    const day = formatDay("en", atMs);
    const key = `“${keyName ?? "–"}”`;
    const quota = (percent: number): Sentence => [
      `${percent} % of the credits are used`,
      `${percent} % of your account's credits are used; they renew on ${day}.`,
      "/package",
    ];
    const all: Readonly<Record<MailedKind, () => Sentence>> = {
      "quota-75": () => quota(75),
      "quota-90": () => quota(90),
      "quota-100": () => [
        "the credits are used up",
        `Your account's credits are used up; calls get 429 until ${day}. An Owner can upgrade the package.`,
        "/package",
      ],
      "key-limit": () => [
        `key ${key} has reached its limit`,
        `Your key ${key} has reached its limit; its calls get 401 until ${day}.`,
        "/keys",
      ],
      "user-limit": () => [
        "you have reached your limit",
        `You have reached your own limit; your calls get 401 until ${day}. An Admin or Owner can raise it.`,
        "/",
      ],
      "key-expiring": () => [
        `key ${key} expires`,
        `Your key ${key} works until ${formatDayTime("en", atMs)}; after that its calls get 401.`,
        "/keys",
      ],
      "trial-ending": () => [
        "your trial ends",
        `Your account's trial ends on ${formatDay("en", atMs - 1)}. Unless you have cancelled, the package is charged from then on.`,
        "/package",
      ],
      "package-ending": () => [
        "your package ends",
        `Your cancelled package ends on ${formatDay("en", atMs - 1)}; after that calls get 403.`,
        "/package",
      ],
    };
    return all[kind]();
  },
};
