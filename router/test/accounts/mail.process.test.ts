import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { invitationLetter, resetLetter } from "../../src/mail/letters.ts";
import { createMail, type Mail, type MailConfig } from "../../src/mail/mail.ts";
import { startSmtpServer, type SmtpServer } from "./smtp-server.ts";

const secret = "smtp-pass-5fd1c0";
const facts = {
  accountName: "Müller & Söhne",
  url: "https://portal.example/invitation#the-token",
  expiresAtMs: Date.parse("2026-11-21T10:30:00Z"),
};
let smtp: SmtpServer;
let events: string[];
let mail: Mail;

function open(config: Partial<MailConfig> = {}): Mail {
  return createMail(
    { url: `smtp://weiche:${secret}@127.0.0.1:${smtp.port}`, from: "Weiche <portal@example.com>", ...config },
    systemClock,
    {
      mailSent: (kind) => void events.push(`${kind} sent`),
      mailFailed: (kind, code) => void events.push(`${kind} failed ${code}`),
    },
  );
}
beforeEach(async () => {
  smtp = await startSmtpServer();
  events = [];
  mail = open();
});
afterEach(async () => {
  await mail[Symbol.asyncDispose]();
  await smtp[Symbol.asyncDispose]();
});

test("an invitation arrives in the language of its receiver, with an unbroken link", async () => {
  expect(await mail.send("ada@example.com", invitationLetter("de", facts))).toBe(true);
  expect(await mail.send("ada@example.com", invitationLetter("en", facts))).toBe(true);
  const [german, english] = smtp.mails;
  expect(german).toMatchObject({ from: "FROM:<portal@example.com>", to: ["TO:<ada@example.com>"] });
  expect(german!.subject).toBe("Einladung zu Müller & Söhne");
  expect(german!.body).toContain(`\n${facts.url}\n`);
  expect(german!.body).toContain("bis 21. November 2026 um 11:30");
  expect(english!.subject).toBe("Invitation to Müller & Söhne");
  expect(english!.body).toContain("until 21 November 2026 at 11:30");
  expect(smtp.credentials).toContain(`\0weiche\0${secret}`);
  expect(events).toEqual(["invitation sent", "invitation sent"]);
});

test("a receiver without a chosen language gets both languages", async () => {
  await mail.send("ada@example.com", resetLetter(null, facts));
  expect(smtp.mails[0]!.subject).toBe("Neues Passwort / New password");
  expect(smtp.mails[0]!.body.split(facts.url).length).toBe(3);
});

test("an account's name cannot add headers or receivers", async () => {
  const accountName = "ACME\r\nBcc: eve@example.com\r\n\r\nhello";
  await mail.send("ada@example.com", invitationLetter("en", { ...facts, accountName }));
  expect(smtp.mails[0]!.to).toEqual(["TO:<ada@example.com>"]);
  expect(smtp.mails[0]!.raw.split("\n\n")[0]).not.toMatch(/^Bcc:/im);
});

test("an address with a comma names exactly one receiver", async () => {
  await mail.send("eve,ada@example.com", resetLetter("en", facts));
  expect(smtp.mails.length).toBe(1);
  for (const { to } of smtp.mails) expect(to).toEqual(['TO:<"eve,ada"@example.com>']);
});

test.each([
  ["refuses-receivers", "reset failed 550"],
  ["cuts", "reset failed ECONNECTION"],
] as const)("a mail server that %s is logged as a failure, without the server's text", async (mood, event) => {
  smtp.mood = mood;
  expect(await mail.send("ada@example.com", resetLetter("en", facts))).toBe(false);
  expect(events).toEqual([event]);
});

test("a refused SMTP password is logged as a failure, without the password", async () => {
  smtp.mood = "refuses-senders";
  expect(await mail.send("ada@example.com", resetLetter("en", facts))).toBe(false);
  expect(events).toEqual(["reset failed 535"]);
});

test("closing waits for mails that are being sent", async () => {
  const sending = Array.from({ length: 5 }, () => mail.send("ada@example.com", resetLetter("en", facts)));
  await mail[Symbol.asyncDispose]();
  expect(smtp.mails.length).toBe(5);
  expect(await Promise.all(sending)).toEqual([true, true, true, true, true]);
});

test("mails beyond the queue's maximum are refused", async () => {
  smtp.mood = "silent";
  const waiting = Array.from({ length: 50 }, () => mail.send("ada@example.com", resetLetter("en", facts)));
  expect(await mail.send("ada@example.com", resetLetter("en", facts))).toBe(false);
  expect(events).toEqual(["reset failed QUEUE"]);
  expect(mail.pending).toBe(50);
  await smtp[Symbol.asyncDispose]();
  expect((await Promise.all(waiting)).every((sent) => !sent)).toBe(true);
  expect(mail.pending).toBe(0);
  smtp = await startSmtpServer();
});
