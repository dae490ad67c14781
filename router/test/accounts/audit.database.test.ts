import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { verifyAudit } from "../../src/rights/audit.ts";
import { auditStep } from "../../src/rights/audit-page.ts";
import { removeOldAudit } from "../../src/rights/audit-retention.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases } from "../db/database-fixture.ts";
import { auditOf, keysOf } from "./whole-lists.ts";

const nowMs = Date.parse("2026-11-14T10:30:00.120Z");
let database: Database;
let accounts: Accounts;
let accountId: AccountId;
let userId: UserId;
const server = await forThisFile(testDatabases());
beforeEach(async () => {
  database = await server.newDatabase();
  accounts = createAccounts({ database, clock: new VirtualClock(nowMs), portalUrl: "https://portal.example" });
  const account = await accounts.create({ name: "ACME", ownerEmail: "ada@example.com", package: "Pro" });
  accountId = account.id;
  userId = asId(account.ownerUserId);
});

async function entries(): Promise<string[]> {
  const listed = await auditOf(database, accountId);
  return listed.toReversed().map(({ action, object, result }) => `${action} ${object.split(" ")[0]} ${result}`);
}

describe("the audit log", () => {
  test("records who did what to which object, when, from where and with what result", async () => {
    const origin = { actor: userId, source: "192.0.2.7" };
    await accounts.as(origin).subscriptions.change(accountId, { action: "upgrade", package: "Business" });
    expect(await auditOf(database, accountId)).toEqual([
      {
        number: 2,
        at: "2026-11-14T10:30:00.12Z",
        actor: userId,
        source: "192.0.2.7",
        action: "subscription.upgrade",
        object: `account ${accountId}`,
        result: "done",
        details: { package: "Business" },
      },
      expect.objectContaining({
        number: 1,
        actor: "operator",
        action: "account.create",
        object: `account ${accountId}`,
        details: { package: "Pro" },
      }),
    ]);
    expect(await auditOf(database, accountId, 2)).toMatchObject([{ number: 1 }]);
  });

  test.each([undefined, "ben@example.com"])("is read in steps without a gap, with the search %s", async (search) => {
    for (const name of ["ann", "ben", "cem"])
      await accounts.users.create({ accountId, email: `${name}@example.com`, role: "member" });
    const inSteps: number[] = [];
    for (let before: number | undefined = 1_000; before !== undefined;) {
      const step = await auditStep(database, accountId, { search, before }, 2);
      inSteps.push(...step.entries.map(({ number }) => number));
      before = step.next;
    }
    const { entries: whole } = await auditStep(database, accountId, { search }, 1_000);
    expect(whole.length).toBe(search === undefined ? 4 : 1);
    expect(inSteps).toEqual(whole.map(({ number }) => number));
  });

  test("records every operation, refused ones too", async () => {
    const ben = await accounts.users.create({ accountId, email: "ben@example.com", role: "member" });
    await accounts.users.update(ben.id, { creditLimit: millicredits(5_000n) });
    await accounts.users.setBlocked(ben.id, true);
    await accounts.users.setBlocked(ben.id, false);
    const key = await accounts.keys.create(ben.id, { name: "ci" });
    await accounts.keys.update(key.id, { name: "cd" });
    const fresh = await accounts.keys.regenerate(key.id);
    await accounts.keys.revoke(fresh.id);
    await expect(accounts.keys.update(key.id, { name: "x" })).rejects.toThrow("revoked");
    await expect(accounts.users.create({ accountId, email: "ben@example.com", role: "member" })).rejects.toThrow(
      "e-mail",
    );
    await expect(accounts.subscriptions.change(accountId, { action: "withdraw" })).rejects.toThrow(
      "nothing to withdraw",
    );
    await accounts.subscriptions.change(accountId, { action: "cancel" });
    expect(await entries()).toEqual([
      "account.create account done",
      "user.create user done",
      "user.update user done",
      "user.block user done",
      "user.unblock user done",
      "key.create key done",
      "key.update key done",
      "key.regenerate key done",
      "key.revoke key done",
      "key.update key refused: conflict",
      "user.create account refused: conflict",
      "subscription.withdraw account refused: conflict",
      "subscription.cancel account done",
    ]);
    const regenerated = (await auditOf(database, accountId)).find(({ action }) => action === "key.regenerate");
    expect(regenerated).toMatchObject({ object: `key ${fresh.id}`, details: { replaces: key.id } });
    expect(await verifyAudit(database)).toEqual({ chains: 1, entries: 13, broken: [] });
  });

  test("contains no key, no address and no invitation token", async () => {
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    await accounts.keys.create(userId, { name: `my key is ${key}` });
    const { invitationUrl } = await accounts.users.create({ accountId, email: "eve@example.com", role: "admin" });
    const { rows } = await database.pool.query<{ all: string }>("select json_agg(l)::text as all from audit_log l");
    for (const secret of [key, key.slice(10, 40), "eve@example.com", "ada@example.com", invitationUrl.split("#")[1]!])
      expect(rows[0]!.all).not.toContain(secret);
  });

  test("is written in the transaction of the change: neither is committed without the other", async () => {
    await database.pool.query("alter table audit_log add constraint full_disk check (action <> 'key.create')");
    await expect(accounts.keys.create(userId, { name: "ci" })).rejects.toThrow("full_disk");
    expect(await keysOf(database, userId, nowMs)).toEqual([]);
    expect(await verifyAudit(database)).toMatchObject({ broken: [] });
  });

  test("stays a valid chain under concurrent changes", async () => {
    const blocks = Array.from({ length: 30 }, (_, n) => accounts.users.setBlocked(userId, n % 2 === 0));
    const orders = Array.from({ length: 10 }, () => accounts.subscriptions.change(accountId, { action: "cancel" }));
    await Promise.allSettled([...blocks, ...orders]);
    expect(await verifyAudit(database, accountId)).toEqual({ chains: 1, entries: 41, broken: [] });
  });
});

describe("audit entries older than their retention", () => {
  const daysLater = (days: number) => nowMs + days * 86_400_000;
  async function block(atMs: number, blocked: boolean): Promise<void> {
    const later = createAccounts({ database, clock: new VirtualClock(atMs), portalUrl: "https://portal.example" });
    await later.users.setBlocked(userId, blocked);
  }
  beforeEach(async () => {
    await block(daysLater(1), true);
    await block(daysLater(5), false);
    await block(daysLater(6), true);
  });

  test("are removed from the beginning of a chain, whose rest stays valid and continues", async () => {
    expect(await removeOldAudit(database, daysLater(10), 7)).toBe(2);
    expect((await auditOf(database, accountId)).map(({ number }) => number)).toEqual([4, 3]);
    await block(daysLater(10), false);
    expect(await verifyAudit(database)).toEqual({ chains: 1, entries: 3, broken: [] });
    expect(await removeOldAudit(database, daysLater(10), 7)).toBe(0);
    expect(await removeOldAudit(database, daysLater(12.5), 7)).toBe(1);
    expect(await verifyAudit(database)).toEqual({ chains: 1, entries: 2, broken: [] });
  });

  test("may be all entries of a chain", async () => {
    expect(await removeOldAudit(database, daysLater(1000), 7)).toBe(4);
    expect(await verifyAudit(database)).toEqual({ chains: 1, entries: 0, broken: [] });
    await block(daysLater(1000), false);
    expect(await verifyAudit(database)).toEqual({ chains: 1, entries: 1, broken: [] });
  });

  test("do not hide other removed or changed entries", async () => {
    await removeOldAudit(database, daysLater(10), 7);
    await expect(database.pool.query("delete from audit_log")).rejects.toThrow("only added to");
    await database.pool.query(
      "alter table audit_log disable trigger audit_log_kept; delete from audit_log where number = 3",
    );
    expect(await verifyAudit(database)).toMatchObject({ broken: [{ number: 3, why: "missing" }] });
    await database.pool.query("delete from audit_log");
    expect(await verifyAudit(database)).toMatchObject({ broken: [{ number: 3, why: "cut off" }] });
    await database.pool.query("update audit_checkpoints set number = 4");
    expect(await verifyAudit(database)).toMatchObject({ broken: [{ number: 5, why: "changed" }] });
  });
});

describe("a manipulated audit log", () => {
  beforeEach(async () => {
    for (const blocked of [true, false, true, false]) await accounts.users.setBlocked(userId, blocked);
  });

  test.each(["update audit_log set actor = 'nobody'", "delete from audit_log where number = 5", "truncate audit_log"])(
    "cannot be made with plain SQL: %s",
    async (harm) => {
      await expect(database.pool.query(harm)).rejects.toThrow("only added to");
      expect(await verifyAudit(database)).toEqual({ chains: 1, entries: 5, broken: [] });
    },
  );

  test.each([
    ["changed", 3, "update audit_log set actor = 'nobody' where number = 3"],
    ["changed", 2, "update audit_log set details = '{\"a\":1}' where number = 2"],
    ["changed", 4, "update audit_log set at = at + interval '1 second' where number = 4"],
    ["missing", 3, "delete from audit_log where number = 3"],
    ["missing", 1, "delete from audit_log where number = 1"],
    ["cut off", 5, "delete from audit_log where number = 5"],
    ["cut off", 1, "truncate audit_log"],
  ])("is detected: %s at entry %i", async (why, number, harm) => {
    await database.pool.query(`alter table audit_log disable trigger audit_log_kept; ${harm}`);
    expect(await verifyAudit(database)).toMatchObject({ broken: [{ accountId, number, why }] });
  });
});
