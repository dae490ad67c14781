/** Notices, from their events to their readers. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import type { Catalogue, CatalogueEntry } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type KeyId, type ModelId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { sweepIdentity } from "../../src/accounts/identity-sweep.ts";
import { announceCatalogue } from "../../src/accounts/notices-catalogue.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { mailNotices } from "../../src/accounts/notice-mails.ts";
import { createMail } from "../../src/mail/mail.ts";
import { startSmtpServer, type SmtpServer } from "../accounts/smtp-server.ts";
import { createEvaluator, type Evaluator } from "../../src/usage/evaluator.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { catalogue as fiveModels } from "../api/api-harness.ts";
import { startPortal, type Person } from "./portal-rig.ts";
import { makeRecord } from "../usage/usage-records.ts";

const dayMs = 86_400_000;
const startMs = Date.parse("2026-11-14T09:00:00+01:00");
let evaluator: Evaluator;
let catalogue: Catalogue;
let changes: readonly ServiceChange[];
let ada: Person;
let anna: Person;
let ben: Person;
let bensKey: KeyId;
const clock = new VirtualClock(startMs);
const portal = await forThisFile(startPortal({ clock }));
beforeEach(async () => {
  clock.advance(startMs - clock.now());
  catalogue = fiveModels;
  changes = [];
  evaluator = openEvaluator();
  ada = await portal.newAccount("ACME", { package: "Starter" });
  anna = await portal.newUser(ada, "admin");
  ben = await portal.newUser(ada, "member");
  bensKey = (await portal.accounts.keys.create(ben.id, { name: "batch" })).id;
  clock.advance(1_000);
});
afterEach(async () => {
  await portal.database.pool.query("delete from subscriptions");
});

function openEvaluator(): Evaluator {
  const { database, accounts } = portal;
  return createEvaluator(
    database,
    clock,
    accounts.subscriptions,
    { creditsEvaluated() {} },
    {
      get: () => catalogue,
      changes: () => changes,
    },
  );
}

/** Lets two routers read the catalogue at once, and then a restarted router. */
async function lookAtCatalogue(): Promise<void> {
  await Promise.all([evaluator.evaluate(), announceCatalogue(portal.database, { catalogue, changes }, clock.now())]);
  await openEvaluator().evaluate();
}

/** Starts two announcements, each of which waits to write until the other can go no further. */
async function heldAtTheirWrite(start: () => readonly Promise<number>[]): Promise<void> {
  const { pool } = portal.database;
  const holder = await pool.connect();
  await holder.query("begin");
  await holder.query("lock table announced_changes in share mode"); // which may still be read
  const announced = Promise.all(start());
  const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await expect.poll(async () => (await pool.query(waiting)).rowCount, { timeout: 20_000 }).toBe(2);
  await holder.query("commit");
  holder.release();
  await announced;
}

async function spend(credits: number, by: Person = ada, key: KeyId = asId(by.id)): Promise<void> {
  await makeUsageDays(portal.database.pool, [clock.now()]);
  const record = makeRecord(createRandom(1), clock.now(), {
    requestId: asId(uuidv7(clock)),
    accountId: by.accountId,
    userId: by.id,
    keyId: key,
    promptTokens: credits,
    completionTokens: 0,
    factor: millicredits(1000n),
  });
  await commitUsage(portal.database.pool, [{ node: asId("node-1"), record }]);
}

/** Signs in again, because days have passed. */
const seenBy = async (who: Person, query = "") =>
  (await portal.get(`/notices?${query}`, await portal.signIn(who))).json;
const kinds = async (who: Person) => (await seenBy(who)).items.map(({ kind }: { kind: string }) => kind);

describe("notices", () => {
  test("of the quota reach everybody, with its facts, once per period", async () => {
    await spend(4_600_000);
    await evaluator.evaluate();
    await evaluator.evaluate();
    for (const who of [ada, anna, ben]) expect((await kinds(who)).toSorted()).toEqual(["quota-75", "quota-90"]);
    const { items, unread } = await seenBy(ben);
    // The higher level says it all.
    expect(items.toSorted((a: any, b: any) => (a.kind < b.kind ? -1 : 1))).toMatchObject([
      { kind: "quota-75", read: true },
      { kind: "quota-90", read: false },
    ]);
    expect(unread).toBe(1);
    expect(items[0]).toMatchObject({
      user: null,
      key: null,
      facts: { package: "Starter", quota: "5000000.000", periodEnd: "2026-12-13T23:00:00Z" },
    });
  });

  test("of a reached limit reach its user and administrators, and are new again for a raised limit", async () => {
    await portal.accounts.users.update(ben.id, { creditLimit: millicredits(100_000n) });
    await portal.accounts.keys.update(bensKey, { creditLimit: millicredits(50_000n) });
    await spend(60, ben, bensKey);
    await evaluator.evaluate();
    expect((await seenBy(anna)).items).toMatchObject([
      { kind: "key-limit", user: { email: ben.email }, key: { name: "batch" }, facts: { limit: "50.000" } },
    ]);
    await portal.send("POST", "/notices/read", {}, ben);
    expect(await seenBy(ben)).toMatchObject({ unread: 0 });
    await spend(60, ben, bensKey);
    clock.advance(60_000);
    await evaluator.evaluate();
    await portal.accounts.keys.update(bensKey, { creditLimit: millicredits(110_000n) });
    clock.advance(60_000);
    await evaluator.evaluate();
    expect(await seenBy(ben)).toMatchObject({
      unread: 2,
      items: [{ kind: "key-limit", facts: { limit: "110.000" } }, { kind: "user-limit" }],
    });
    const cleo = await portal.newUser(ada, "member");
    expect(await kinds(cleo)).toEqual([]);
    expect(await kinds(await portal.newAccount("Other"))).toEqual([]);
  });

  test("of limits and ends that a person changes each minute do not pile up", async () => {
    const month = await portal.accounts.keys.create(ben.id, { name: "month", expiresMs: clock.now() + 30 * dayMs });
    await spend(60, ben, bensKey);
    clock.advance(24 * dayMs);
    for (let minute = 1; minute <= 5; minute++) {
      await portal.accounts.keys.update(bensKey, { creditLimit: millicredits(BigInt(minute)) });
      await portal.accounts.users.update(ben.id, { creditLimit: millicredits(BigInt(minute)) });
      await portal.accounts.keys.update(month.id, { expiresMs: clock.now() + dayMs });
      clock.advance(60_000);
      await evaluator.evaluate();
    }
    expect((await kinds(ben)).toSorted()).toEqual(["key-expiring", "key-limit", "user-limit"]);
  });

  test("beyond the newest 10,000 of an account are not listed, and removed by the sweep", async () => {
    await portal.database.pool.query(
      `insert into notices (account_id, kind, event, facts, created_at)
       select $1, 'trial-ending', 'old ' || n, '{"endsAt": "2026-12-13T23:00:00Z"}', now() - interval '1 day' * n from generate_series(1, 10010) n`,
      [ada.accountId],
    );
    const count = async () =>
      (await portal.database.pool.query("select 1 from notices where account_id = $1", [ada.accountId])).rowCount;
    await portal.database.pool.query("update users set created_at = '-infinity' where id = $1", [anna.id]);
    expect((await seenBy(anna)).total).toBe(10_000);
    await sweepIdentity(portal.database, clock.now(), 90);
    expect([await count(), (await seenBy(anna)).total]).toEqual([10_000, 10_000]);
    await portal.database.pool.query("delete from notices where account_id = $1", [ada.accountId]);
  });

  test("of an expiring key come a week before, unless it was made for less time or is revoked", async () => {
    const make = async (name: string, days: number) =>
      (await portal.accounts.keys.create(ben.id, { name, expiresMs: clock.now() + days * dayMs })).id;
    const [month, gone] = [await make("month", 30), await make("gone", 30)];
    await make("short", 5);
    await evaluator.evaluate();
    expect(await kinds(ben)).toEqual([]);
    clock.advance(23 * dayMs - 1);
    await evaluator.evaluate();
    expect(await kinds(ben)).toEqual([]);
    clock.advance(1);
    await evaluator.evaluate();
    await evaluator.evaluate();
    await portal.accounts.keys.revoke(gone);
    expect((await seenBy(ben)).items).toMatchObject([
      { kind: "key-expiring", key: { id: month }, facts: { expiresAt: "2026-12-14T08:00:01.000Z" } },
    ]);
  });

  test("of an ending trial come a week before, also if it was cancelled", async () => {
    const eve = await portal.newAccount("Trial");
    await portal.accounts.subscriptions.change(eve.accountId, { action: "trial" });
    clock.advance(22 * dayMs);
    await evaluator.evaluate();
    expect(await kinds(eve)).toEqual([]);
    clock.advance(dayMs);
    await evaluator.evaluate();
    await evaluator.evaluate();
    expect((await seenBy(eve)).items).toMatchObject([
      { kind: "trial-ending", facts: { endsAt: "2026-12-13T23:00:00.000Z" } },
    ]);
    expect(await kinds(ada)).toEqual([]);
  });

  test("of the catalogue reach every account once, also after restarts, and again when it changes back [H8]", async () => {
    await evaluator.evaluate();
    expect(await kinds(ada)).toEqual([]); // nothing was known before
    const turn = async (model: string, more: Partial<CatalogueEntry>) => {
      const entry = fiveModels.get(asId<ModelId>(model))!;
      catalogue = new Map([...fiveModels, [entry.id, { ...entry, ...more }]]);
      await lookAtCatalogue();
    };
    await turn("small-24b", { status: "Auslaufend" });
    expect((await seenBy(ben)).items).toMatchObject([
      { kind: "model-status", facts: { model: "small-24b", from: "Beta", to: "Auslaufend" } },
    ]);
    await turn("small-24b", {});
    await turn("small-24b", { status: "Auslaufend" });
    expect(await kinds(ben)).toEqual(["model-status", "model-status", "model-status"]);
    expect(await kinds(await portal.newAccount("Later"))).toEqual([]);
    await turn("small-24b", {});
    await portal.database.pool.query("delete from announced_models");
  });

  test("of the changelog reach every account once, with the changes of their models, except entries from the first start [H8]", async () => {
    const write = (days: number, en: string, ...models: string[]): ServiceChange => ({
      atMs: clock.now() + days * dayMs,
      text: { de: `${en} (deutsch)`, en },
      models: models.map((model) => asId<ModelId>(model)),
    });
    const first = write(-3, "The first entry", "small-24b");
    await portal.database.pool.query("delete from announced_changes");
    changes = [first];
    await lookAtCatalogue();
    expect(await kinds(ada)).toEqual([]); // it stood there before anybody looked

    const soon = write(12, "The factor goes down", "small-24b", "coder-next");
    changes = [soon, write(5, "The portal is closed for an hour"), first, write(-40, "History", "small-24b")];
    const entry = fiveModels.get(asId<ModelId>("small-24b"))!;
    const factors = [...entry.factors, { validFromMs: soon.atMs, factor: millicredits(1_500n) }];
    catalogue = new Map([...fiveModels, [entry.id, { ...entry, factors }]]);
    await lookAtCatalogue();
    const { items } = await seenBy(ben);
    expect(items).toMatchObject([
      {
        kind: "model-change",
        facts: {
          ...{ at: "2026-11-26T08:00:01Z", text: soon.text, models: ["small-24b", "coder-next"] },
          news: [{ kind: "model-factor", facts: { model: "small-24b", to: "2.000", coming: [{ factor: "1.500" }] } }],
        },
      },
    ]);
    expect(items).toHaveLength(1); // the notice includes the change of the factor, which gets no notice of its own

    changes = [{ ...soon, text: { ...soon.text, en: "The factor goes down to 1.5" } }, first];
    await lookAtCatalogue(); // in better words
    changes = [];
    await lookAtCatalogue(); // removed
    changes = [soon, first];
    await lookAtCatalogue(); // and back
    expect(await kinds(ada)).toEqual(["model-change"]);
    expect(await kinds(await portal.newAccount("Later"))).toEqual([]);
    await portal.database.pool.query("delete from announced_models");
  });

  test("of an entry that two routers see at once come once, even if one router has read a corrected text [H8]", async () => {
    const entry = (en: string): ServiceChange => ({
      atMs: clock.now(),
      text: { de: "deutsch", en },
      models: [asId<ModelId>("small-24b")],
    });
    const announce = (seen: readonly ServiceChange[]) =>
      announceCatalogue(portal.database, { catalogue, changes: seen }, clock.now());
    await announce([]); // the models are known
    await portal.database.pool.query("delete from announced_changes");
    await heldAtTheirWrite(() => [announce([]), announce([])]);
    expect((await portal.database.pool.query("select 1 from announced_changes")).rowCount).toBe(1);
    await heldAtTheirWrite(() => [announce([entry("It is cheeper")]), announce([entry("It is cheaper")])]);
    for (const who of [ada, ben]) expect(await kinds(who)).toEqual(["model-change"]);
  });

  test("are unread until their reader marks them, separately for each reader", async () => {
    const { pool } = portal.database;
    for (const event of ["one", "two"])
      await pool.query(
        "insert into notices (account_id, kind, event, facts, created_at) values ($1, $2, $3, '{}', $4)",
        [...[ada.accountId, "model-change", event, new Date(clock.now()).toISOString()]],
      );
    const facts = { at: "2026-11-14T08:00:00Z", text: { de: "x", en: "x" }, models: [], news: [] };
    await pool.query("update notices set facts = $2 where account_id = $1", [ada.accountId, facts]);
    const page = await seenBy(ada, "pageSize=1");
    expect(page).toMatchObject({ total: 2, unread: 2, items: [{ read: false }] });
    const read = (who: Person, body: object) => portal.send("POST", "/notices/read", body, who);
    expect((await read(ada, { ids: [page.items[0].id] })).json).toEqual({ unread: 1 });
    expect(await seenBy(ada, "unread=true")).toMatchObject({ total: 1, unread: 1, items: [{ read: false }] });
    expect((await seenBy(ada)).items.map(({ read: done }: any) => done).toSorted()).toEqual([false, true]);
    expect(await seenBy(anna)).toMatchObject({ unread: 2 });
    expect((await read(ada, {})).json).toEqual({ unread: 0 });
    expect((await read(ada, {})).json).toEqual({ unread: 0 });
    expect(await seenBy(ada, "unread=true")).toMatchObject({ total: 0, items: [] });
  });

  test("are over once nothing is left to do about them", async () => {
    const unread = async (who: Person = ada) =>
      (await seenBy(who, "unread=true")).items.map(({ kind }: any) => kind).toSorted();
    const { keys, subscriptions } = portal.accounts;
    await keys.update(bensKey, { creditLimit: millicredits(50_000n) });
    const dying = (await keys.create(ben.id, { name: "dying", expiresMs: clock.now() + 8 * dayMs })).id;
    await spend(5_000_000, ben, bensKey);
    clock.advance(2 * dayMs);
    await evaluator.evaluate();
    expect(await unread()).toEqual(["key-expiring", "key-limit", "quota-100"]);
    await keys.update(bensKey, { creditLimit: millicredits(60_000n) });
    await evaluator.evaluate();
    expect(await unread()).toEqual(["key-expiring", "key-limit", "quota-100"]); // of the new limit
    expect((await kinds(ada)).filter((kind: string) => kind === "key-limit")).toHaveLength(1);
    await keys.update(bensKey, { creditLimit: null });
    await keys.update(dying, { expiresMs: clock.now() + 60 * dayMs });
    await subscriptions.change(ada.accountId, { action: "upgrade", package: "Pro" });
    await evaluator.evaluate();
    expect(await unread()).toEqual([]);
    expect(await kinds(ada)).not.toEqual([]); // they stay in the list
    await spend(62_000_000, ben, bensKey);
    await evaluator.evaluate();
    expect(await unread()).toEqual(["quota-75"]); // of the larger package, in the same period
    clock.advance(40 * dayMs);
    expect(await unread(await portal.signIn(ada))).toEqual([]);
  });

  test("of other users cannot be marked as read", async () => {
    await portal.accounts.keys.update(bensKey, { creditLimit: millicredits(50_000n) });
    await spend(60, ben, bensKey);
    await evaluator.evaluate();
    const { id } = (await seenBy(ben)).items[0];
    const eve = await portal.newAccount("Other");
    const cleo = await portal.newUser(ada, "member");
    for (const who of [eve, cleo]) await portal.send("POST", "/notices/read", { ids: [id] }, who);
    const { rowCount } = await portal.database.pool.query("select 1 from notice_reads where notice_id = $1", [id]);
    expect(rowCount).toBe(0);
  });
});

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
    for (const { id } of [ada, anna, ben])
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
    await portal.accounts.users.update(ben.id, { creditLimit: millicredits(100_000n) });
    await spend(4_600_000, ben, bensKey);
    await evaluator.evaluate();
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
    expect((await portal.send("PATCH", "/profile", { mailsOff: ["quota", "sign-in"] }, anna)).status).toBe(200);
    await portal.send("PATCH", "/profile", { language: "de" }, ada);
    await spend(5_000_000);
    await evaluator.evaluate();
    await send();
    expect(smtp.mails.map(({ subject }) => subject)).toEqual(["ACME: Credits verbraucht"]);
    expect(smtp.mails[0]!.body).toContain("Aufrufe erhalten 429 bis 14. Dezember 2026.");
  });

  test("are tried again after the mail server refused them, and not after they arrived", async () => {
    await using opened = new AsyncDisposableStack();
    const { smtp, send } = await openMail(opened);
    await portal.accounts.users.delete(anna.id);
    await spend(4_000_000);
    await evaluator.evaluate();
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
    await portal.accounts.subscriptions.change(ada.accountId, { action: "cancel" });
    clock.advance(22 * dayMs);
    await evaluator.evaluate();
    await send();
    expect(smtp.mails).toEqual([]);
    clock.advance(dayMs);
    await evaluator.evaluate();
    await send();
    expect(mailsOf(smtp)).toEqual(["owner ACME: your package ends"]);
    expect(smtp.mails[0]!.body).toContain("ends on 13 December 2026; after that calls get 403.");
    expect((await seenBy(ben)).items).toMatchObject([
      { kind: "package-ending", read: false, facts: { package: "Starter", endsAt: "2026-12-13T23:00:00.000Z" } },
    ]);
    await portal.accounts.subscriptions.change(ada.accountId, { action: "withdraw" });
    expect((await seenBy(ben)).items).toMatchObject([{ kind: "package-ending", read: true }]);
  });

  test("are not sent hours after their event", async () => {
    await using opened = new AsyncDisposableStack();
    const { smtp, send } = await openMail(opened);
    await spend(4_000_000);
    await evaluator.evaluate();
    clock.advance(6 * 3_600_000 + 1_000);
    await send();
    expect(smtp.mails).toEqual([]);
  });
});
