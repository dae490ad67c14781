/** Mails about notices, to a mail server of the test. */
import { beforeEach, describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { mailNotices } from "../../../src/accounts/notice-mails.ts";
import { createMail } from "../../../src/mail/mail.ts";
import { startSmtpServer, type SmtpServer } from "../../accounts/smtp-server.ts";
import { dayMs, noticesPerTest } from "./notices-rig.ts";

const rig = await noticesPerTest();
const { portal, clock } = rig;

describe("mails about notices", () => {
  const mailsOf = (smtp: SmtpServer) =>
    smtp.mails.map(({ to, subject }) => `${/<(\w+?)\d/.exec(to[0]!)![1]} ${subject}`).toSorted();

  async function openMail(opened: AsyncDisposableStack) {
    const smtp = opened.use(await startSmtpServer());
    const config = { url: `smtp://127.0.0.1:${smtp.port}`, from: "Weiche <portal@example.com>" };
    const mail = opened.use(createMail(config, systemClock, { mailSent() {}, mailFailed() {} }));
    return { smtp, send: () => mailNotices(portal.database, clock, mail, "https://portal.example") };
  }

  beforeEach(async () => {
    await portal.database.pool.query("delete from notices");
    for (const { id } of [rig.ada, rig.anna, rig.ben])
      await portal.database.pool.query(
        "insert into credentials (user_id, password, password_set_at) values ($1, '$argon2id$none', now())",
        [id],
      );
    await portal.database.pool.query("update users set language = 'en'");
  });

  test("reach those whom they concern once, however many routers send them", async () => {
    await using opened = new AsyncDisposableStack();
    const { smtp, send } = await openMail(opened);
    const other = await openMail(opened);
    await portal.accounts.users.update(rig.ben.id, { creditLimit: millicredits(100_000n) });
    await rig.spend(4_600_000, rig.ben, rig.bensKey);
    await rig.evaluator.evaluate();
    await Promise.all([send(), other.send(), send(), other.send()]);
    for (const again of [send, other.send]) expect(await again()).toBe(0);
    const all = [...mailsOf(smtp), ...mailsOf(other.smtp)].toSorted();
    expect(all).toEqual([
      // Nobody gets the lower level, 75 %.
      "admin ACME: 90 % of the credits are used",
      "member ACME: you have reached your limit",
      "owner ACME: 90 % of the credits are used",
    ]);
    const [first] = [...smtp.mails, ...other.smtp.mails].filter(({ subject }) => subject.includes("90 %"));
    expect(first!.body).toContain("90 % of your account's credits are used; they renew on 14 December 2026.");
    expect(first!.body).toContain("https://portal.example/package");
  });

  test("are not sent to who has turned them off, and reach a person in their language", async () => {
    await using opened = new AsyncDisposableStack();
    const { smtp, send } = await openMail(opened);
    expect((await portal.send("PATCH", "/profile", { mailsOff: ["quota", "sign-in"] }, rig.anna)).status).toBe(200);
    await portal.send("PATCH", "/profile", { language: "de" }, rig.ada);
    await rig.spend(5_000_000);
    await rig.evaluator.evaluate();
    await send();
    expect(smtp.mails.map(({ subject }) => subject)).toEqual(["ACME: Credits verbraucht"]);
    expect(smtp.mails[0]!.body).toContain("Aufrufe erhalten 429 bis 14. Dezember 2026.");
  });

  test("are tried again after the mail server refused them, and not after they arrived", async () => {
    await using opened = new AsyncDisposableStack();
    const { smtp, send } = await openMail(opened);
    await portal.accounts.users.delete(rig.anna.id);
    await rig.spend(4_000_000);
    await rig.evaluator.evaluate();
    smtp.mood = "refuses-receivers";
    expect(await send()).toBe(0);
    smtp.mood = "friendly";
    expect(await send()).toBe(1);
    expect(await send()).toBe(0);
    expect(mailsOf(smtp)).toEqual(["owner ACME: 75 % of the credits are used"]);
    // A router that took a mail and died does not know whether it arrived.
    await portal.database.pool.query("update notice_mails set taken_at = now()");
    expect(await send()).toBe(0);
  });

  test("tell Owners a week before a trial or a cancelled package ends", async () => {
    await using opened = new AsyncDisposableStack();
    const { smtp, send } = await openMail(opened);
    await portal.accounts.subscriptions.change(rig.ada.accountId, { action: "cancel" });
    clock.advance(22 * dayMs);
    await rig.evaluator.evaluate();
    await send();
    expect(smtp.mails).toEqual([]);
    clock.advance(dayMs);
    await rig.evaluator.evaluate();
    await send();
    expect(mailsOf(smtp)).toEqual(["owner ACME: your package ends"]);
    expect(smtp.mails[0]!.body).toContain("ends on 13 December 2026; after that calls get 403.");
    expect((await rig.seenBy(rig.ben)).items).toMatchObject([
      { kind: "package-ending", read: false, facts: { package: "Starter", endsAt: "2026-12-13T23:00:00.000Z" } },
    ]);
    await portal.accounts.subscriptions.change(rig.ada.accountId, { action: "withdraw" });
    expect((await rig.seenBy(rig.ben)).items).toMatchObject([{ kind: "package-ending", read: true }]);
  });

  test("are not sent hours after their event", async () => {
    await using opened = new AsyncDisposableStack();
    const { smtp, send } = await openMail(opened);
    await rig.spend(4_000_000);
    await rig.evaluator.evaluate();
    clock.advance(6 * 3_600_000 + 1_000);
    await send();
    expect(smtp.mails).toEqual([]);
  });
});
