import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId } from "@weiche/shared/ids.ts";
import { peopleOf } from "./whole-lists.ts";
import { accounts, clock, count, database, nowMs, refusal, server, set, userId, userPerTest } from "./accounts-rig.ts";

const nobody = "00000000-0000-7000-8000-000000000000";

await userPerTest();

describe("an account", () => {
  test("is created with its Owner, an invitation and a package whose period begins now", async () => {
    const created = await accounts.create({
      name: " Müller & Söhne ",
      ownerEmail: " Ada@Example.COM ",
      package: "business plus",
    });
    expect(created).toMatchObject({
      name: "Müller & Söhne",
      package: "Business Plus",
      state: "active",
      periodStart: "2026-01-31T13:00:00Z",
      periodEnd: "2026-02-27T23:00:00Z",
    });
    const { invitationUrl, ...account } = created;
    expect(await accounts.show(created.id)).toEqual(account);
    const people = await peopleOf(database, created.id, clock.now());
    expect(people).toMatchObject([
      { id: created.ownerUserId, email: "ada@example.com", role: "owner", state: "invited" },
    ]);
    expect(await accounts.list()).toContainEqual(account);

    const token = /^https:\/\/portal\.example\/invitation#([\w-]{43})$/.exec(invitationUrl)![1]!;
    const { rows } = await database.pool.query("select user_id, expires_at from invitations where token_hash = $1", [
      hash("sha256", token),
    ]);
    expect(rows).toEqual([{ user_id: created.ownerUserId, expires_at: Temporal.Instant.from("2026-02-07T13:00:00Z") }]);
  });

  test("enters its next billing period by the clock, on the day of its order [S16.10]", async () => {
    const { id } = await accounts.create({ name: "A", ownerEmail: "rhythm@example.com", package: "Pro" });
    clock.advance(Date.parse("2026-03-01T00:00:00+01:00") - nowMs);
    expect(await accounts.show(id)).toMatchObject({
      periodStart: "2026-02-27T23:00:00Z",
      periodEnd: "2026-03-30T22:00:00Z",
    });
  });

  test("without a package has the state `no package`", async () => {
    const { id } = await accounts.create({ name: "A", ownerEmail: "none@example.com" });
    expect(await accounts.show(id)).toMatchObject({
      package: null,
      state: "no package",
      periodStart: null,
      periodEnd: null,
    });
  });

  test("with an unknown package or a used e-mail address is refused, and no account is created", async () => {
    const before = await accounts.list();
    expect(await refusal(accounts.create({ name: "A", ownerEmail: "x@example.com", package: "Gold" }))).toBe(
      'invalid: there is no package "Gold"; choose one of Starter, Pro, Business, Business Plus',
    );
    expect(await refusal(accounts.create({ name: "A", ownerEmail: `OWNER${count}@example.com` }))).toMatch(
      /^conflict: .*e-mail/,
    );
    expect(await accounts.list()).toEqual(before);
  });

  test("that does not exist is refused as not found", async () => {
    expect(await refusal(accounts.show(asId(nobody)))).toBe(`not_found: there is no account ${nobody}`);
    expect(await refusal(accounts.users.create({ accountId: asId(nobody), email: "a@b.c", role: "admin" }))).toMatch(
      /^not_found/,
    );
    expect(await refusal(accounts.users.setBlocked(asId(nobody), true))).toMatch(/^not_found/);
    expect(await refusal(accounts.keys.create(asId(nobody), { name: "k" }))).toMatch(/^not_found/);
    expect(await refusal(accounts.keys.revoke(asId(nobody)))).toMatch(/^not_found/);
  });
});

test("nobody can register an address that deletion assigns to deleted users", async () => {
  const account = await accounts.create({ name: "A", ownerEmail: "gone@example.com" });
  const ben = { accountId: account.id, email: "ben.deleted@example.com", role: "member" } as const;
  const { id } = await accounts.users.create(ben);
  for (const email of [`${id}@deleted.invalid`, ` ${id.toUpperCase()}@Deleted.Invalid `]) {
    expect(await refusal(accounts.users.create({ ...ben, email }))).toMatch(/^invalid/);
    expect(await refusal(accounts.create({ name: "B", ownerEmail: email }))).toMatch(/^invalid/);
  }
  expect((await accounts.users.delete(id)).email).toBe(`${id}@deleted.invalid`);
  expect((await accounts.users.create(ben)).email).toBe(ben.email);
});

test("a user can be deleted even if another user has the deleted user's replacement address", async () => {
  const account = await accounts.create({ name: "A", ownerEmail: "squatter@example.com" });
  const person = (email: string) => accounts.users.create({ accountId: account.id, email, role: "member" });
  const [squatter, ben] = [await person("was.there@example.com"), await person("ben.squatted@example.com")];
  const rename = (id: string, email: string) =>
    database.pool.query("update users set email = $2 where id = $1", [id, email]);
  await rename(squatter.id, `${ben.id}@deleted.invalid`);
  const { email } = await accounts.users.delete(ben.id);
  expect(email).toMatch(new RegExp(`^${ben.id}\\..+@deleted\\.invalid$`));
  await expect(person("ben.squatted@example.com")).resolves.toMatchObject({ email: "ben.squatted@example.com" });
  expect((await accounts.users.delete(squatter.id)).email).toBe(`${squatter.id}@deleted.invalid`);
});

test("a user's restrictions can be set and removed, and an update keeps restrictions that it does not name", async () => {
  const accountId = (await accounts.create({ name: "A", ownerEmail: "restrict@example.com" })).id;
  const wish = {
    accountId,
    email: "ben@example.com",
    role: "member",
    allowedModels: ["a"],
    creditLimit: millicredits(1_500n),
  } as const;
  const { id } = await accounts.users.create(wish);
  expect(await accounts.users.update(id, { allowedModels: ["a", "b"] })).toMatchObject({
    allowedModels: ["a", "b"],
    creditLimit: "1.500",
  });
  expect(await accounts.users.update(id, { allowedModels: null, creditLimit: null })).toMatchObject({
    allowedModels: null,
    creditLimit: null,
  });
});

test("no table and no server log contains a key or an invitation token [E7 H3 S13.4]", async () => {
  const { invitationUrl } = await accounts.create({ name: "A", ownerEmail: `canary${count}@example.com` });
  const { id, key } = await accounts.keys.create(userId, { name: "ci" });
  const secrets = [key, (await accounts.keys.regenerate(id)).key, invitationUrl.split("#")[1]!];
  await expect(database.pool.query("insert into users values ($1)", [secrets[0]])).rejects.toThrow("uuid");
  await expect(set("api_keys", id, "hash", secrets[0])).rejects.toThrow("api_keys_hash_check");
  const { rows } = await database.pool.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public'",
  );
  const sinks = [readFileSync(join(server.connection.host!, "postgres.log"), "utf8")];
  for (const { name } of rows)
    sinks.push(JSON.stringify((await database.pool.query(`select t::text as row from ${name} t`)).rows));
  expect(sinks.join("")).toContain(hash("sha256", secrets[0]!));
  for (const secret of secrets) for (const sink of sinks) expect(sink).not.toContain(secret.slice(0, 24));
});

test("database constraints refuse rows that the rules forbid", async () => {
  const { id } = await accounts.keys.create(userId, { name: "ci" });
  const newAccount = (name: string, more: { package?: string } = {}) =>
    accounts.create({ name: "A", ownerEmail: `${name}${count}@example.com`, ...more });
  const { id: accountId } = await newAccount("rules", { package: "Pro" });
  // Without a package, so that only the check can refuse.
  const { id: withoutPackage } = await newAccount("checks");
  const order = (account: string, startedAt: string) =>
    database.pool.query("insert into subscriptions values ($1, 'Pro', 'active', $2)", [account, startedAt]);
  for (const [wrong, constraint] of [
    [() => set("users", userId, "role", "king"), "users_role_check"],
    [() => set("users", userId, "email", "Ada@example.com"), "users_email_check"],
    [() => set("users", userId, "credit_limit", -1), "users_credit_limit_check"],
    [() => set("accounts", accountId, "name", "two\nlines"), "accounts_name_check"],
    [() => set("api_keys", id, "account_id", accountId), "api_keys_user_id_account_id_fkey"],
    [() => set("api_keys", id, "hash", "sk-weiche-plain"), "api_keys_hash_check"],
    [() => order(accountId, "2027-01-01T00:00:00Z"), "one_open_subscription"],
    [() => order(withoutPackage, "2027-01-01T00:00:00.0001Z"), "subscriptions_check1"], // of milliseconds
  ] as const)
    await expect(wrong()).rejects.toMatchObject({ constraint });
  await order(withoutPackage, "2027-01-01T00:00:00Z");
});
