/** Accepted addresses name exactly one mailbox, tried with a real mail program and a mail server. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { newAddress, normalEmail } from "../../src/mail/email-address.ts";
import { resetLetter } from "../../src/mail/letters.ts";
import { createMail, type Mail } from "../../src/mail/mail.ts";
import { startSmtpServer, type SmtpServer } from "./smtp-server.ts";

let smtp: SmtpServer;
let mail: Mail;
beforeAll(async () => {
  smtp = await startSmtpServer();
  const config = { url: `smtp://weiche:x@127.0.0.1:${smtp.port}`, from: "portal@example.com" };
  mail = createMail(config, systemClock, { mailSent() {}, mailFailed() {} });
});
afterAll(async () => {
  await mail[Symbol.asyncDispose]();
  await smtp[Symbol.asyncDispose]();
});

function accepted(text: string): string | undefined {
  try {
    return newAddress(text);
  } catch {
    return undefined;
  }
}

describe("an address of a new user", () => {
  test.each([
    ["ada@example.com", "ada@example.com"],
    [" Ada.Byron+weiche@Sub.Example.COM ", "ada.byron+weiche@sub.example.com"],
    ["o'brien_1{x}@xn--mller-kva.de", "o'brien_1{x}@xn--mller-kva.de"],
    ["root@localhost", "root@localhost"],
    [`${"a".repeat(64)}@example.com`, `${"a".repeat(64)}@example.com`],
  ])("may be %s", (text, email) => {
    expect(newAddress(text)).toBe(email);
  });

  test.each([
    "<a@b.example>",
    "Ada <a@b.example>",
    "a@b.example, c@d.example",
    "a@b.example;c@d.example",
    "a@b.example\r\nBcc: c@d.example",
    "a@b.example\u0000",
    "a(comment)@b.example",
    "a@b.example (Ada)",
    '"a"@b.example',
    '"a b"@b.example',
    "a b@b.example",
    "a\u00a0@b.example",
    "a@b.example\u00a0",
    "\u200ba@b.example",
    "a\u00ad@b.example",
    "ä@b.example",
    "a@bücher.example",
    "\u212a@b.example",
    "a@b@c.example",
    "@b.example",
    "a@",
    "a",
    ".a@b.example",
    "a.@b.example",
    "a..b@b.example",
    "a@.b.example",
    "a@b..example",
    "a@b.example.",
    "a@-b.example",
    "a@b-.example",
    "a@b_c.example",
    "a@[127.0.0.1]",
    "a@[x@evil.example]",
    "a@127.0.0.1",
    "a@127.1",
    "a@0x7f.1",
    "group:a@b.example;",
    "a%c@d\\@b.example",
    `${"a".repeat(65)}@example.com`,
    `a@${"b".repeat(64)}.example`,
    `a@${"b.".repeat(126)}example`,
    "0190a0a0-0000-7000-8000-000000000001@deleted.invalid",
  ])("may not be %j", (text) => {
    expect(accepted(text)).toBeUndefined();
  });
});

const piece = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.string({ unit: fc.constantFrom(..."abcxyz019-+_.'={}!#$%&*/?^`|~".split("")), maxLength: 8 }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...'<>()[]:;@,\\"\r\n\t \u0000\u00a0\u2028äK\u212a'.split(""), "xn--", "=?utf-8?q?a?="),
  },
);
const candidate = fc
  .tuple(fc.array(piece, { minLength: 1, maxLength: 3 }), fc.array(piece, { minLength: 1, maxLength: 3 }))
  .map(([local, domain]) => `${local.join("")}@${domain.join("")}.example`);

test("an accepted address reaches exactly the mailbox of that name, in the envelope and in the header", async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(candidate, async (text) => {
      const email = accepted(text);
      fc.pre(email !== undefined);
      expect(accepted(email)).toBe(email);
      expect(normalEmail(text)).toBe(email);
      count++;
      const before = smtp.mails.length;
      expect([text, await mail.send(email, resetLetter("en", { url: "https://x.example/", expiresAtMs: 0 }))]).toEqual([
        text,
        true,
      ]);
      const [got, ...more] = smtp.mails.slice(before);
      expect(more).toEqual([]);
      expect(got!.to).toEqual([`TO:<${email}>`]);
      expect(/^To: (.*)$/m.exec(got!.raw.replaceAll(/\n[ \t]+/g, " "))![1]).toBe(email);
    }),
    { numRuns: 150, maxSkipsPerRun: 100 },
  );
  expect(count).toBeGreaterThanOrEqual(150);
});

test("users with an address that is refused today still sign in with it", () => {
  expect(normalEmail(" <A@B.example> ")).toBe("<a@b.example>");
});
