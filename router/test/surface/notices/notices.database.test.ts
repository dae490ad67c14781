/** Notices, from their events to their readers. */
import { describe, expect, test } from "vitest";
import type { CatalogueEntry } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { sweepIdentity } from "../../../src/accounts/identity-sweep.ts";
import { announceCatalogue } from "../../../src/accounts/notices-catalogue.ts";
import { catalogue as fiveModels } from "../../api/api-harness.ts";
import type { Person } from "../portal-rig.ts";
import { dayMs, noticesPerTest } from "./notices-rig.ts";

const rig = await noticesPerTest();
const { portal, clock } = rig;

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

describe("notices", () => {
  test("of the quota reach everybody, with its facts, once per period", async () => {
    await rig.spend(4_600_000);
    await rig.evaluator.evaluate();
    await rig.evaluator.evaluate();
    for (const who of [rig.ada, rig.anna, rig.ben])
      expect((await rig.kinds(who)).toSorted()).toEqual(["quota-75", "quota-90"]);
    const { items, unread } = await rig.seenBy(rig.ben);
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
    await portal.accounts.users.update(rig.ben.id, { creditLimit: millicredits(100_000n) });
    await portal.accounts.keys.update(rig.bensKey, { creditLimit: millicredits(50_000n) });
    await rig.spend(60, rig.ben, rig.bensKey);
    await rig.evaluator.evaluate();
    expect((await rig.seenBy(rig.anna)).items).toMatchObject([
      { kind: "key-limit", user: { email: rig.ben.email }, key: { name: "batch" }, facts: { limit: "50.000" } },
    ]);
    await portal.send("POST", "/notices/read", {}, rig.ben);
    expect(await rig.seenBy(rig.ben)).toMatchObject({ unread: 0 });
    await rig.spend(60, rig.ben, rig.bensKey);
    clock.advance(60_000);
    await rig.evaluator.evaluate();
    await portal.accounts.keys.update(rig.bensKey, { creditLimit: millicredits(110_000n) });
    clock.advance(60_000);
    await rig.evaluator.evaluate();
    expect(await rig.seenBy(rig.ben)).toMatchObject({
      unread: 2,
      items: [{ kind: "key-limit", facts: { limit: "110.000" } }, { kind: "user-limit" }],
    });
    const cleo = await portal.newUser(rig.ada, "member");
    expect(await rig.kinds(cleo)).toEqual([]);
    expect(await rig.kinds(await portal.newAccount("Other"))).toEqual([]);
  });

  test("of limits and ends that a person changes each minute do not pile up", async () => {
    const month = await portal.accounts.keys.create(rig.ben.id, { name: "month", expiresMs: clock.now() + 30 * dayMs });
    await rig.spend(60, rig.ben, rig.bensKey);
    clock.advance(24 * dayMs);
    for (let minute = 1; minute <= 5; minute++) {
      await portal.accounts.keys.update(rig.bensKey, { creditLimit: millicredits(BigInt(minute)) });
      await portal.accounts.users.update(rig.ben.id, { creditLimit: millicredits(BigInt(minute)) });
      await portal.accounts.keys.update(month.id, { expiresMs: clock.now() + dayMs });
      clock.advance(60_000);
      await rig.evaluator.evaluate();
    }
    expect((await rig.kinds(rig.ben)).toSorted()).toEqual(["key-expiring", "key-limit", "user-limit"]);
  });

  test("beyond the newest 10,000 of an account are not listed, and removed by the sweep", async () => {
    await portal.database.pool.query(
      `insert into notices (account_id, kind, event, facts, created_at)
       select $1, 'trial-ending', 'old ' || n, '{"endsAt": "2026-12-13T23:00:00Z"}', now() - interval '1 day' * n from generate_series(1, 10010) n`,
      [rig.ada.accountId],
    );
    const count = async () =>
      (await portal.database.pool.query("select 1 from notices where account_id = $1", [rig.ada.accountId])).rowCount;
    await portal.database.pool.query("update users set created_at = '-infinity' where id = $1", [rig.anna.id]);
    expect((await rig.seenBy(rig.anna)).total).toBe(10_000);
    await sweepIdentity(portal.database, clock.now(), 90);
    expect([await count(), (await rig.seenBy(rig.anna)).total]).toEqual([10_000, 10_000]);
    await portal.database.pool.query("delete from notices where account_id = $1", [rig.ada.accountId]);
  });

  test("of an expiring key come a week before, unless it was made for less time or is revoked", async () => {
    const make = async (name: string, days: number) =>
      (await portal.accounts.keys.create(rig.ben.id, { name, expiresMs: clock.now() + days * dayMs })).id;
    const [month, gone] = [await make("month", 30), await make("gone", 30)];
    await make("short", 5);
    await rig.evaluator.evaluate();
    expect(await rig.kinds(rig.ben)).toEqual([]);
    clock.advance(23 * dayMs - 1);
    await rig.evaluator.evaluate();
    expect(await rig.kinds(rig.ben)).toEqual([]);
    clock.advance(1);
    await rig.evaluator.evaluate();
    await rig.evaluator.evaluate();
    await portal.accounts.keys.revoke(gone);
    expect((await rig.seenBy(rig.ben)).items).toMatchObject([
      { kind: "key-expiring", key: { id: month }, facts: { expiresAt: "2026-12-14T08:00:01.000Z" } },
    ]);
  });

  test("of an ending trial come a week before, also if it was cancelled", async () => {
    const eve = await portal.newAccount("Trial");
    await portal.accounts.subscriptions.change(eve.accountId, { action: "trial" });
    clock.advance(22 * dayMs);
    await rig.evaluator.evaluate();
    expect(await rig.kinds(eve)).toEqual([]);
    clock.advance(dayMs);
    await rig.evaluator.evaluate();
    await rig.evaluator.evaluate();
    expect((await rig.seenBy(eve)).items).toMatchObject([
      { kind: "trial-ending", facts: { endsAt: "2026-12-13T23:00:00.000Z" } },
    ]);
    expect(await rig.kinds(rig.ada)).toEqual([]);
  });

  test("of the catalogue reach every account once, also after restarts, and again when it changes back [H8]", async () => {
    await rig.evaluator.evaluate();
    expect(await rig.kinds(rig.ada)).toEqual([]); // nothing was known before
    const turn = async (model: string, more: Partial<CatalogueEntry>) => {
      const entry = fiveModels.get(asId<ModelId>(model))!;
      rig.catalogue = new Map([...fiveModels, [entry.id, { ...entry, ...more }]]);
      await rig.lookAtCatalogue();
    };
    await turn("small-24b", { status: "Auslaufend" });
    expect((await rig.seenBy(rig.ben)).items).toMatchObject([
      { kind: "model-status", facts: { model: "small-24b", from: "Beta", to: "Auslaufend" } },
    ]);
    await turn("small-24b", {});
    await turn("small-24b", { status: "Auslaufend" });
    expect(await rig.kinds(rig.ben)).toEqual(["model-status", "model-status", "model-status"]);
    expect(await rig.kinds(await portal.newAccount("Later"))).toEqual([]);
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
    rig.changes = [first];
    await rig.lookAtCatalogue();
    expect(await rig.kinds(rig.ada)).toEqual([]); // it stood there before anybody looked

    const soon = write(12, "The factor goes down", "small-24b", "coder-next");
    rig.changes = [soon, write(5, "The portal is closed for an hour"), first, write(-40, "History", "small-24b")];
    const entry = fiveModels.get(asId<ModelId>("small-24b"))!;
    const factors = [...entry.factors, { validFromMs: soon.atMs, factor: millicredits(1_500n) }];
    rig.catalogue = new Map([...fiveModels, [entry.id, { ...entry, factors }]]);
    await rig.lookAtCatalogue();
    const { items } = await rig.seenBy(rig.ben);
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

    rig.changes = [{ ...soon, text: { ...soon.text, en: "The factor goes down to 1.5" } }, first];
    await rig.lookAtCatalogue(); // in better words
    rig.changes = [];
    await rig.lookAtCatalogue(); // removed
    rig.changes = [soon, first];
    await rig.lookAtCatalogue(); // and back
    expect(await rig.kinds(rig.ada)).toEqual(["model-change"]);
    expect(await rig.kinds(await portal.newAccount("Later"))).toEqual([]);
    await portal.database.pool.query("delete from announced_models");
  });

  test("of an entry that two routers see at once come once, even if one router has read a corrected text [H8]", async () => {
    const entry = (en: string): ServiceChange => ({
      atMs: clock.now(),
      text: { de: "deutsch", en },
      models: [asId<ModelId>("small-24b")],
    });
    const announce = (seen: readonly ServiceChange[]) =>
      announceCatalogue(portal.database, { catalogue: rig.catalogue, changes: seen }, clock.now());
    await announce([]); // the models are known
    await portal.database.pool.query("delete from announced_changes");
    await heldAtTheirWrite(() => [announce([]), announce([])]);
    expect((await portal.database.pool.query("select 1 from announced_changes")).rowCount).toBe(1);
    await heldAtTheirWrite(() => [announce([entry("It is cheeper")]), announce([entry("It is cheaper")])]);
    for (const who of [rig.ada, rig.ben]) expect(await rig.kinds(who)).toEqual(["model-change"]);
  });

  test("are unread until their reader marks them, separately for each reader", async () => {
    const { pool } = portal.database;
    for (const event of ["one", "two"])
      await pool.query(
        "insert into notices (account_id, kind, event, facts, created_at) values ($1, $2, $3, '{}', $4)",
        [...[rig.ada.accountId, "model-change", event, new Date(clock.now()).toISOString()]],
      );
    const facts = { at: "2026-11-14T08:00:00Z", text: { de: "x", en: "x" }, models: [], news: [] };
    await pool.query("update notices set facts = $2 where account_id = $1", [rig.ada.accountId, facts]);
    const page = await rig.seenBy(rig.ada, "pageSize=1");
    expect(page).toMatchObject({ total: 2, unread: 2, items: [{ read: false }] });
    const read = (who: Person, body: object) => portal.send("POST", "/notices/read", body, who);
    expect((await read(rig.ada, { ids: [page.items[0].id] })).json).toEqual({ unread: 1 });
    expect(await rig.seenBy(rig.ada, "unread=true")).toMatchObject({ total: 1, unread: 1, items: [{ read: false }] });
    expect((await rig.seenBy(rig.ada)).items.map(({ read: done }: any) => done).toSorted()).toEqual([false, true]);
    expect(await rig.seenBy(rig.anna)).toMatchObject({ unread: 2 });
    expect((await read(rig.ada, {})).json).toEqual({ unread: 0 });
    expect((await read(rig.ada, {})).json).toEqual({ unread: 0 });
    expect(await rig.seenBy(rig.ada, "unread=true")).toMatchObject({ total: 0, items: [] });
  });

  test("are over once nothing is left to do about them", async () => {
    const unread = async (who: Person = rig.ada) =>
      (await rig.seenBy(who, "unread=true")).items.map(({ kind }: any) => kind).toSorted();
    const { keys, subscriptions } = portal.accounts;
    await keys.update(rig.bensKey, { creditLimit: millicredits(50_000n) });
    const dying = (await keys.create(rig.ben.id, { name: "dying", expiresMs: clock.now() + 8 * dayMs })).id;
    await rig.spend(5_000_000, rig.ben, rig.bensKey);
    clock.advance(2 * dayMs);
    await rig.evaluator.evaluate();
    expect(await unread()).toEqual(["key-expiring", "key-limit", "quota-100"]);
    await keys.update(rig.bensKey, { creditLimit: millicredits(60_000n) });
    await rig.evaluator.evaluate();
    expect(await unread()).toEqual(["key-expiring", "key-limit", "quota-100"]); // of the new limit
    expect((await rig.kinds(rig.ada)).filter((kind: string) => kind === "key-limit")).toHaveLength(1);
    await keys.update(rig.bensKey, { creditLimit: null });
    await keys.update(dying, { expiresMs: clock.now() + 60 * dayMs });
    await subscriptions.change(rig.ada.accountId, { action: "upgrade", package: "Pro" });
    await rig.evaluator.evaluate();
    expect(await unread()).toEqual([]);
    expect(await rig.kinds(rig.ada)).not.toEqual([]); // they stay in the list
    await rig.spend(62_000_000, rig.ben, rig.bensKey);
    await rig.evaluator.evaluate();
    expect(await unread()).toEqual(["quota-75"]); // of the larger package, in the same period
    clock.advance(40 * dayMs);
    expect(await unread(await portal.signIn(rig.ada))).toEqual([]);
  });

  test("of other users cannot be marked as read", async () => {
    await portal.accounts.keys.update(rig.bensKey, { creditLimit: millicredits(50_000n) });
    await rig.spend(60, rig.ben, rig.bensKey);
    await rig.evaluator.evaluate();
    const { id } = (await rig.seenBy(rig.ben)).items[0];
    const eve = await portal.newAccount("Other");
    const cleo = await portal.newUser(rig.ada, "member");
    for (const who of [eve, cleo]) await portal.send("POST", "/notices/read", { ids: [id] }, who);
    const { rowCount } = await portal.database.pool.query("select 1 from notice_reads where notice_id = $1", [id]);
    expect(rowCount).toBe(0);
  });
});
