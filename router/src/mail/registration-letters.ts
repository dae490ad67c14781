/** Texts of mails about a registration. Pure. */
import type { Language } from "../db/schema.ts";
import { formatDayTime, inLanguage, type Letter } from "./letters.ts";

interface ConfirmationFacts {
  readonly accountName: string;
  readonly url: string;
  readonly expiresAtMs: number;
}

export function confirmationLetter(language: Language | null, facts: ConfirmationFacts): Letter {
  return { kind: "registration", ...inLanguage(language, (one) => confirmation[one](facts)) };
}

/** For somebody who registers an address that a user has already. */
export function existingAccountLetter(language: Language | null, facts: { readonly portalUrl: string }): Letter {
  return { kind: "registration", ...inLanguage(language, (one) => existing[one](facts)) };
}

interface WelcomeFacts {
  readonly accountName: string;
  readonly portalUrl: string;
}

export function welcomeLetter(language: Language | null, facts: WelcomeFacts): Letter {
  return { kind: "welcome", ...inLanguage(language, (one) => welcome[one](facts)) };
}

const confirmation = {
  de: ({ accountName, url, expiresAtMs }: ConfirmationFacts) => ({
    subject: "Bitte bestätigen Sie Ihre E-Mail-Adresse",
    text: `Guten Tag,

unter diesem Link bestätigen Sie Ihre Adresse, legen Ihr Passwort fest und eröffnen das Konto „${accountName}“:

${url}

Er gilt einmal und bis ${formatDayTime("de", expiresAtMs)}. Waren Sie es nicht, ist nichts zu tun: Ohne den Link entsteht kein Konto.`,
  }),
  en: ({ accountName, url, expiresAtMs }: ConfirmationFacts) => ({
    subject: "Please confirm your e-mail address",
    text: `Hello,

Confirm your address here, choose your password and open the account “${accountName}”:

${url}

The link works once, until ${formatDayTime("en", expiresAtMs)}. If it was not you, do nothing: no account is opened without the link.`,
  }),
};

const existing = {
  de: ({ portalUrl }: { readonly portalUrl: string }) => ({
    subject: "Sie haben schon ein Konto",
    text: `Guten Tag,

jemand wollte mit dieser Adresse ein Konto eröffnen. Sie gehört aber schon zu einem Konto. Melden Sie sich hier an, oder fordern Sie dort ein neues Passwort an:

${portalUrl}

Waren Sie es nicht, ist nichts zu tun.`,
  }),
  en: ({ portalUrl }: { readonly portalUrl: string }) => ({
    subject: "You have an account already",
    text: `Hello,

Somebody tried to open an account with this address, but the address belongs to an account already. Sign in here, or ask for a new password there:

${portalUrl}

If it was not you, do nothing.`,
  }),
};

const welcome = {
  de: ({ accountName, portalUrl }: WelcomeFacts) => ({
    subject: `Willkommen: Das Konto ${accountName} ist eröffnet`,
    text: `Guten Tag,

das Konto „${accountName}“ ist eröffnet, und Sie sind sein Owner. Die nächsten Schritte:

1. Paket wählen: ${portalUrl}/package
2. Schlüssel erstellen und die erste Anfrage senden: ${portalUrl}/start
3. Kollegen einladen: ${portalUrl}/users`,
  }),
  en: ({ accountName, portalUrl }: WelcomeFacts) => ({
    subject: `Welcome: the account ${accountName} is open`,
    text: `Hello,

The account “${accountName}” is open, and you are its Owner. What to do next:

1. Choose a package: ${portalUrl}/package
2. Create a key and send the first request: ${portalUrl}/start
3. Invite colleagues: ${portalUrl}/users`,
  }),
};
