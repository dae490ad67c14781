/** The keys of a user: their states, their secrets and their number. */
import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import type { KeyId } from "@weiche/shared/ids.ts";
import { activeKeysMax } from "../../src/accounts/keys.ts";
import { keysOf } from "./whole-lists.ts";
import { accounts, clock, database, nowMs, refusal, set, userId, userPerTest } from "./accounts-rig.ts";

const hourMs = 3_600_000;

await userPerTest();

async function stateOf(id: KeyId): Promise<string> {
  return (await keysOf(database, userId, clock.now())).find((key) => key.id === id)!.state;
}

describe("an API key", () => {
  test("is returned once; only its hash and its last four characters are stored [S13.4 S14.2]", async () => {
    const { key, ...view } = await accounts.keys.create(userId, { name: " ci " });
    const { accountId: _account, ...listed } = view;
    expect(await keysOf(database, userId, clock.now())).toMatchObject([listed]);
    expect(view).toMatchObject({ name: "ci", state: "active", lastFour: key.slice(-4), expiresAt: null });
    const { rows } = await database.pool.query("select row_to_json(k)::text as row from api_keys k where id = $1", [
      view.id,
    ]);
    expect(rows[0]).toMatchObject({ row: expect.stringContaining(hash("sha256", key)) as string });
    expect(rows[0]).not.toMatchObject({ row: expect.stringContaining(key.slice(0, 20)) as string });
  });

  /** Every transition of the service's table of key states: the trigger and the new state. */
  const transitions: [string, (id: KeyId) => Promise<unknown>, string][] = [
    ["nothing happens", () => Promise.resolve(), "active"],
    ["its expiry passes", () => Promise.resolve(clock.advance(2 * hourMs)), "expired"],
    ["it is revoked", (id) => accounts.keys.revoke(id), "revoked"],
    ["it is revoked twice", (id) => accounts.keys.revoke(id).then(() => accounts.keys.revoke(id)), "revoked"],
    ["it is regenerated", (id) => accounts.keys.regenerate(id), "revoked"],
    ["its limit is reached", (id) => reach("api_keys", id), "blocked-by-limit"],
    ["its user's limit is reached", () => reach("users", userId), "blocked-by-limit"],
    [
      "its limit is raised",
      (id) => reach("api_keys", id).then(() => accounts.keys.update(id, { creditLimit: millicredits(9n) })),
      "active",
    ],
    [
      "its user's limit is raised",
      () => reach("users", userId).then(() => accounts.users.update(userId, { creditLimit: null })),
      "active",
    ],
    ["a new billing period begins", (id) => reach("api_keys", id).then(() => clock.advance(hourMs)), "active"],
    ["its user is blocked", () => accounts.users.setBlocked(userId, true), "user-blocked"],
    [
      "its user is unblocked",
      () => accounts.users.setBlocked(userId, true).then(() => accounts.users.setBlocked(userId, false)),
      "active",
    ],
  ];
  const reach = (table: string, id: string) =>
    set(table, id, "limit_reached_until", new Date(nowMs + hourMs).toISOString());
  test.each(transitions)("has the state of the service's table when %s [S14.6]", async (_trigger, change, state) => {
    const { id } = await accounts.keys.create(userId, { name: "ci", expiresMs: nowMs + 2 * hourMs });
    await change(id);
    expect(await stateOf(id)).toBe(state);
  });

  test("that is regenerated gets a new value, keeps its settings and is no longer blocked by its limit [S14.7]", async () => {
    const wish = { name: "ci", allowedModels: ["a"], creditLimit: millicredits(5n), expiresMs: nowMs + hourMs };
    const old = await accounts.keys.create(userId, wish);
    await reach("api_keys", old.id);
    const { key, ...fresh } = await accounts.keys.regenerate(old.id);
    const { key: oldKey, ...oldView } = old;
    expect(key).not.toBe(oldKey);
    expect({ ...fresh, id: old.id, lastFour: old.lastFour }).toEqual(oldView);
    expect(fresh.id).not.toBe(old.id);
  });

  test.each([
    ["revoked", (id: KeyId) => accounts.keys.revoke(id)],
    ["expired", () => Promise.resolve(clock.advance(hourMs))],
  ])("that is %s can be neither changed nor regenerated", async (state, end) => {
    const { id } = await accounts.keys.create(userId, { name: "ci", expiresMs: nowMs + hourMs });
    await end(id);
    expect(await refusal(accounts.keys.update(id, { expiresMs: null }))).toBe(`conflict: the key is ${state}`);
    expect(await refusal(accounts.keys.regenerate(id))).toBe(`conflict: the key is ${state}`);
  });

  test("is refused with an expiry that is not in the future [S14.1]", async () => {
    expect(await refusal(accounts.keys.create(userId, { name: "ci", expiresMs: nowMs }))).toMatch(/^invalid: .*past/);
  });

  test("keeps the fields that an update does not name", async () => {
    const { id } = await accounts.keys.create(userId, { name: "ci", allowedModels: ["a"], expiresMs: nowMs + hourMs });
    expect(await accounts.keys.update(id, { name: "cd" })).toMatchObject({
      name: "cd",
      allowedModels: ["a"],
      expiresAt: "2026-01-31T14:00:00Z",
    });
    expect(await accounts.keys.update(id, { expiresMs: null })).toMatchObject({
      name: "cd",
      allowedModels: ["a"],
      expiresAt: null,
    });
  });
});

describe("at most 25 active keys per user", () => {
  const make = () => accounts.keys.create(userId, { name: "ci", expiresMs: nowMs + hourMs });

  test("are created even if 200 are requested at once [S14.8]", async () => {
    const results = await Promise.allSettled(Array.from({ length: 200 }, make));
    expect(results.filter(({ status }) => status === "fulfilled").length).toBe(activeKeysMax);
    const reasons = results.flatMap((result) =>
      result.status === "rejected" ? [(result.reason as Error).message] : [],
    );
    expect(new Set(reasons)).toEqual(new Set(["the user has 25 active keys already"]));
    const keys = await keysOf(database, userId, clock.now());
    expect(keys.filter(({ state }) => state === "active").length).toBe(activeKeysMax);
  });

  test("include blocked keys, but not revoked or expired ones; regenerating always works [S14.8]", async () => {
    const keys = await Promise.all(Array.from({ length: activeKeysMax }, make));
    await accounts.users.setBlocked(userId, true);
    expect(await refusal(make())).toMatch(/^conflict/);
    await accounts.keys.regenerate(keys[0]!.id);
    expect(await refusal(make())).toMatch(/^conflict/);
    await accounts.keys.revoke(keys[1]!.id);
    await make();
    expect(await refusal(make())).toMatch(/^conflict/);
    clock.advance(hourMs);
    expect((await accounts.keys.create(userId, { name: "ci" })).state).toBe("user-blocked");
  });
});
