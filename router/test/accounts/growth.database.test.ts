/** Bounds on data that a person can produce without end: dead keys leave their table, changes and searches have limits. */
import { expect, test } from "vitest";
import { asId, type AccountId, type KeyId } from "@weiche/shared/ids.ts";
import { deadKeysPerUserMax, retireOldKeys } from "../../src/accounts/retired-keys.ts";
import { usersMax } from "../../src/accounts/users.ts";
import { auditPage } from "../../src/rights/audit-page.ts";
import { changesBurst, changesOf } from "../../src/rights/audit-log.ts";
import { readUsageTable } from "../../src/usage/usage-table.ts";
import { auditOf, keysOf } from "./whole-lists.ts";
import { accounts, clock, database, nowMs, refusal, userId, userPerTest } from "./accounts-rig.ts";

const dayMs = 86_400_000;
await userPerTest();

async function accountOfUser(): Promise<AccountId> {
  const user = database.kysely.selectFrom("users").select("accountId").where("id", "=", userId);
  return (await user.executeTakeFirstOrThrow()).accountId;
}

/** Adds revoked keys as `create` and `revoke` would. */
async function addRevoked(count: number): Promise<void> {
  await database.pool.query(
    `insert into api_keys (id, account_id, user_id, hash, last_four, name, revoked_at, created_at)
     select gen_random_uuid(), u.account_id, u.id, encode(sha256((u.id || ' ' || n)::bytea), 'hex'), 'abcd', 'old ' || n,
       to_timestamp($3), to_timestamp($3) - n * interval '1 second'
     from users u, generate_series(1, $2::integer) n where u.id = $1`,
    [userId, count, nowMs / 1000],
  );
}

/** Adds the usage of one request with the key, as the ledger does. */
async function use(id: KeyId): Promise<void> {
  await database.pool.query("insert into key_uses (key_id, last_used_at) values ($1, now())", [id]);
  await database.pool.query(
    `insert into usage_days (account_id, day, period_start, user_id, key_id, model, requests, prompt_tokens, completion_tokens, credits)
     select account_id, '2026-01-31', '2026-01-01T00:00:00Z', user_id, id, 'm', 1, 1, 1, 1 from api_keys where id = $1`,
    [id],
  );
}

test("lists keep 100 of a user's dead keys, and usage keeps the names of the others [D10]", async () => {
  const used = await accounts.keys.create(userId, { name: "the used one" });
  await use(used.id);
  await accounts.keys.revoke(used.id);
  await addRevoked(deadKeysPerUserMax + 50);
  await database.pool.query("update api_keys set created_at = '2020-01-01' where id = $1", [used.id]);
  const { id } = await accounts.keys.create(userId, { name: "new" });
  const listed = await keysOf(database, userId, clock.now());
  expect(listed.filter(({ state }) => state === "revoked")).toHaveLength(deadKeysPerUserMax);
  expect(listed.map((key) => key.id)).toContain(id);
  const usage = await readUsageTable(database, clock, await accountOfUser(), { by: ["key"], from: "2026-01-01" });
  expect(usage.rows).toMatchObject([{ key: { id: used.id, name: "the used one" } }]);
  expect(await refusal(accounts.keys.update(used.id, { name: "again" }))).toMatch(/^not_found/);
});

test("an account has at most 10,000 users, deleted ones not counted [D10]", async () => {
  const accountId = await accountOfUser();
  const create = (name: string) =>
    accounts.users.create({ accountId, email: `${name}.${userId}@x.example`, role: "member" });
  await database.pool.query(
    `insert into users (id, account_id, email, role, created_at)
     select gen_random_uuid(), $1::uuid, n || '.' || $1::text || '@many.example', 'member', now() from generate_series(2, $2::integer) n`,
    [accountId, usersMax],
  );
  expect(await refusal(create("one-more"))).toBe(
    "conflict: the account has 10000 users already: delete users who are no longer needed",
  );
  const many = database.kysely.selectFrom("users").select("id").where("email", "=", `2.${accountId}@many.example`);
  await accounts.users.delete((await many.executeTakeFirstOrThrow()).id);
  await create("the-last");
  expect(await refusal(create("one-more"))).toMatch(/^conflict/);
});

test("dead keys leave lists after their retention, in any order; active keys never do", async () => {
  const living = await accounts.keys.create(userId, { name: "living", expiresMs: nowMs + 300 * dayMs });
  const expired = await accounts.keys.create(userId, { name: "expired", expiresMs: nowMs + dayMs });
  const replaced = await accounts.keys.create(userId, { name: "replaced" });
  const successor = await accounts.keys.regenerate(replaced.id);
  await accounts.keys.revoke(successor.id);
  await database.pool.query("update api_keys set revoked_at = to_timestamp($2) where id = $1", [
    replaced.id,
    (nowMs + 60 * dayMs) / 1000,
  ]);
  clock.advance(50 * dayMs);
  await retireOldKeys(database, clock.now(), 40);
  const left = (await keysOf(database, userId, clock.now())).map(({ id }) => id);
  expect(left.toSorted()).toEqual([living.id, replaced.id].toSorted());
  expect(expired.id).not.toBe(living.id);
  clock.advance(200 * dayMs);
  await retireOldKeys(database, clock.now(), 40);
  expect((await keysOf(database, userId, clock.now())).map(({ id }) => id)).toEqual([living.id]);
});

test("the daily sweep retires all dead keys of a user beyond 100", async () => {
  const living = await accounts.keys.create(userId, { name: "living" });
  await addRevoked(deadKeysPerUserMax + 250);
  await retireOldKeys(database, clock.now(), 10_000);
  const left = await keysOf(database, userId, clock.now());
  expect(left.filter(({ state }) => state === "revoked")).toHaveLength(deadKeysPerUserMax);
  expect(left.map(({ id }) => id)).toContain(living.id);
  expect(left.map(({ name }) => name)).toContain("old 1");
});

test("a person may make 1,000 changes at once, then one a second; more are refused and not logged [D10]", async () => {
  const me = accounts.as({ actor: userId, source: "192.0.2.7" });
  const rename = () => me.keys.update(id, { name: `n${Math.random()}` });
  const { id } = await me.keys.create(userId, { name: "ci" });
  await database.pool.query("update attempts set level = $2 where subject = $1", [changesOf(userId), changesBurst - 1]);
  await rename();
  const accountId = await accountOfUser();
  const before = await auditOf(database, accountId);
  expect(await refusal(rename())).toBe("too_many_attempts: too many changes: make at most one change a second");
  expect(await auditOf(database, accountId)).toEqual(before);
  clock.advance(1_000);
  await rename();
  expect(await refusal(rename())).toMatch(/^too_many_attempts/);
  // Refused changes count as well, because they are logged. The operator has no limit.
  clock.advance(1_000);
  expect(await refusal(me.keys.update(id, { expiresMs: 1 }))).toMatch(/^invalid/);
  expect(await refusal(rename())).toMatch(/^too_many_attempts/);
  await accounts.keys.update(id, { name: "by the operator" });
});

test("a router whose clock is behind neither refuses a person's changes nor allows more of them", async () => {
  const me = accounts.as({ actor: userId, source: "192.0.2.7" });
  const { id } = await me.keys.create(userId, { name: "ci" });
  const ahead = "update attempts set at = at + interval '2 hours', level = $2 where subject = $1";
  await database.pool.query(ahead, [changesOf(userId), changesBurst - 1]);
  expect(await me.keys.update(id, { name: "again" })).toMatchObject({ name: "again" });
  // Differing clocks allow no additional change.
  clock.advance(2 * 3_600_000);
  expect(await refusal(me.keys.update(id, { name: "more" }))).toMatch(/^too_many_attempts/);
});

test("a search of a long audit log covers the newest entries of the chosen days and reports that it was cut [D10]", async () => {
  const accountId = await accountOfUser();
  await accounts.keys.create(userId, { name: "first" });
  clock.advance(dayMs);
  for (let more = 0; more < 3; more++) await accounts.keys.create(userId, { name: `later ${more}` });
  const page = { limit: 10, offset: 0, sort: "at", order: "desc" } as const;
  const found = async (filter: object, searchedMax: number | null) => {
    const { items, total, isCut } = await auditPage(database, accountId, filter, page, searchedMax);
    return { newest: items[0]?.number, total, isCut };
  };
  expect(await found({}, 3)).toEqual({ newest: 5, total: 3, isCut: true });
  expect(await found({}, 5)).toEqual({ newest: 5, total: 5, isCut: false });
  expect(await found({}, null)).toEqual({ newest: 5, total: 5, isCut: false });
  expect(await found({ action: "account.create" }, 3)).toEqual({ newest: undefined, total: 0, isCut: true });
  const to = new Date(nowMs + 1).toISOString();
  expect(await found({ action: "account.create", to }, 3)).toEqual({ newest: 1, total: 1, isCut: false });
});

test("the limit of 25 keys per user counts only keys that are neither revoked nor expired", async () => {
  await addRevoked(50);
  for (let at = 0; at < 25; at++)
    await accounts.keys.create(userId, { name: `k${at}`, expiresMs: at < 2 ? nowMs + 1_000 : null });
  expect(await refusal(accounts.keys.create(userId, { name: "one more" }))).toMatch(/^conflict/);
  clock.advance(1_000);
  for (let at = 0; at < 2; at++) await accounts.keys.create(userId, { name: `more ${at}` });
  expect(await refusal(accounts.keys.create(asId(userId), { name: "one more" }))).toMatch(/^conflict/);
});
