/** Texts of e-mails, in the recipient's language, or in German and English if the language is unknown. Pure. */
import type { Language } from "../db/schema.ts";

export type LetterKind = "invitation" | "reset" | "notice" | "sign-in" | "registration" | "welcome";

export interface Letter {
  readonly kind: LetterKind;
  readonly subject: string;
  readonly text: string;
}

type Words = Omit<Letter, "kind">;

interface ResetFacts {
  readonly url: string;
  readonly expiresAtMs: number;
}

interface InvitationFacts extends ResetFacts {
  readonly accountName: string;
}

export function invitationLetter(language: Language | null, facts: InvitationFacts): Letter {
  return { kind: "invitation", ...inLanguage(language, (one) => invitation[one](facts)) };
}

export function resetLetter(language: Language | null, facts: ResetFacts): Letter {
  return { kind: "reset", ...inLanguage(language, (one) => reset[one](facts)) };
}

const invitation = {
  de: ({ accountName, url, expiresAtMs }: InvitationFacts): Words => ({
    subject: `Einladung zu ${accountName}`,
    text: `Guten Tag,

Sie sind eingeladen, das Konto „${accountName}“ mit zu nutzen. Unter diesem Link legen Sie Ihr Passwort fest:

${url}

Er gilt einmal und bis ${formatDayTime("de", expiresAtMs)}. Danach hilft, wer Sie eingeladen hat.`,
  }),
  en: ({ accountName, url, expiresAtMs }: InvitationFacts): Words => ({
    subject: `Invitation to ${accountName}`,
    text: `Hello,

You are invited to use the account “${accountName}”. Choose your password here:

${url}

The link works once, until ${formatDayTime("en", expiresAtMs)}. After that, ask the person who invited you for a new one.`,
  }),
};

const reset = {
  de: ({ url, expiresAtMs }: ResetFacts): Words => ({
    subject: "Neues Passwort",
    text: `Guten Tag,

jemand hat für diese Adresse ein neues Passwort angefordert. Unter diesem Link legen Sie es fest:

${url}

Er gilt einmal und bis ${formatDayTime("de", expiresAtMs)}. Waren Sie es nicht, ist nichts zu tun: Ihr Passwort bleibt, wie es ist.`,
  }),
  en: ({ url, expiresAtMs }: ResetFacts): Words => ({
    subject: "New password",
    text: `Hello,

Somebody asked for a new password for this address. Choose it here:

${url}

The link works once, until ${formatDayTime("en", expiresAtMs)}. If it was not you, do nothing: your password does not change.`,
  }),
};

export function inLanguage(language: Language | null, words: (language: Language) => Words): Words {
  if (language) return words(language);
  const [de, en] = [words("de"), words("en")];
  return { subject: `${de.subject} / ${en.subject}`, text: `${de.text}\n\n— — —\n\n${en.text}` };
}

const zone = { dateStyle: "long", timeZone: "Europe/Berlin" } as const;
const localeOf = (language: Language) => (language === "de" ? "de-DE" : "en-GB");

/** Formats a time in the German time zone, as the portal does. */
export function formatDayTime(language: Language, ms: number): string {
  return new Intl.DateTimeFormat(localeOf(language), { ...zone, timeStyle: "short" }).format(ms);
}

export function formatDay(language: Language, ms: number): string {
  return new Intl.DateTimeFormat(localeOf(language), zone).format(ms);
}
