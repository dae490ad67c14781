import { describe, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { asId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { makeApiKey } from "../../src/callers/api-key.ts";
import type { Caller, KeyRefusal } from "../../src/callers/caller.ts";
import { createAccounts } from "../../src/accounts/accounts.ts";
import { openDatabase } from "../../src/db/database.ts";
import { startEmbeddedServer } from "../../src/db/embedded-server.ts";
import { openSilentProxy } from "../edge/silent-proxy.ts";
import { silent, temporaryFolder, until, urlOf } from "../db/database-fixture.ts";
import {
  accountId,
  accounts,
  database,
  hourMs,
  keyCachesOfFile,
  openCache,
  server,
  userId,
  why,
} from "./key-cache-rig.ts";

await keyCachesOfFile();

test("a key's caller has the package's limits and the models that both user and key allow [S13.6]", async () => {
  await using cache = await openCache();
  await accounts.users.update(userId, { allowedModels: ["a", "b", "c"] });
  const { key, id } = await accounts.keys.create(userId, { name: "ci", allowedModels: ["c", "b", "d"] });
  const expected: Caller = {
    accountId,
    userId,
    keyId: id,
    allowedModels: new Set([asId("c"), asId("b")]) as Caller["allowedModels"],
    requestsPerMinute: 60,
    parallelRequests: 10,
  };
  expect(await cache.find(key)).toEqual(expected);
  expect(cache.find(key)).toEqual(expected); // cached now

  await accounts.users.update(userId, { allowedModels: null });
  const free = await accounts.keys.create(userId, { name: "free" });
  expect(await cache.find(free.key)).toMatchObject({ allowedModels: undefined });
});

test("after a failover that loses changes, `forgetAll` makes the cache see a change with a reused number [R3]", async () => {
  const { key, id } = await accounts.keys.create(userId, { name: "ci" });
  await using cache = await openCache({ pollMs: hourMs, hints: false });
  expect(await why(cache, key)).toBe("admitted");
  // A failover loses the last commit, which this cache has read.
  await database.pool.query("delete from changes where number = (select number from change_counter)");
  await database.pool.query("update change_counter set number = number - 1");
  await accounts.keys.revoke(id);
  cache.forgetAll();
  expect(await why(cache, key)).toBe("revoked");
});

describe("a cached key is refused", () => {
  const inAnHour = () => new Date(Date.now() + hourMs).toISOString();
  const changes: [string, (keyId: string) => Promise<unknown>][] = [
    ["revoked", (id) => accounts.keys.revoke(asId(id))],
    ["revoked", (id) => accounts.keys.regenerate(asId(id))],
    ["expired", (id) => database.pool.query("update api_keys set expires_at = now() where id = $1", [id])],
    ["user-blocked", () => accounts.users.setBlocked(userId, true)],
    ["account-blocked", () => accounts.life.setBlocked(accountId, true)],
    ["revoked", () => accounts.life.delete(accountId)],
    [
      "blocked-by-limit",
      (id) => database.pool.query("update api_keys set limit_reached_until = $2 where id = $1", [id, inAnHour()]),
    ],
    [
      "blocked-by-limit",
      () => database.pool.query("update users set limit_reached_until = $2 where id = $1", [userId, inAnHour()]),
    ],
    [
      "no_package",
      () =>
        database.pool.query(
          "update subscriptions set ended_at = date_trunc('milliseconds', now()) where account_id = $1",
          [accountId],
        ),
    ],
    [
      "insufficient_quota",
      () => database.pool.query("update accounts set exhausted_until = $2 where id = $1", [accountId, inAnHour()]),
    ],
  ];
  test.each(changes)("as %s by another router within a second [E1 S14.3 S14.6]", async (reason, change) => {
    const other = await server.openAgain(database);
    await using cache = await openCache({ pollMs: hourMs }, systemClock, other);
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    await until("the new key works", 1_000, async () => (await why(cache, key)) === "admitted");
    await change(id);
    await until(`the key is ${reason}`, 1_000, async () => (await why(cache, key)) === reason);
    expect(await why(cache, key)).toBe(reason);
    await other[Symbol.asyncDispose]();
  });

  test("while its account is blocked, and admitted within a second after the account is unblocked", async () => {
    await using cache = await openCache({ pollMs: hourMs });
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    await accounts.life.setBlocked(accountId, true);
    await until("the key is refused", 1_000, async () => (await why(cache, key)) === "account-blocked");
    await accounts.life.setBlocked(accountId, false);
    await until("the key works", 1_000, async () => (await why(cache, key)) === "admitted");
    expect(await why(cache, key)).toBe("admitted");
  });

  test("within five seconds if no notification arrives [E1]", async () => {
    await using cache = await openCache({ hints: false });
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    expect(await why(cache, key)).toBe("admitted");
    await accounts.keys.revoke(id);
    await until("the key is revoked", 5_000, async () => (await why(cache, key)) === "revoked");
  });

  test("within five seconds even if every connection to the database goes silent [C4 E1]", async () => {
    using proxy = await openSilentProxy(database);
    await using away = await openDatabase({ stateDir: "", databaseUrl: proxy.url }, systemClock, silent);
    await using cache = await openCache({}, systemClock, away);
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    expect(await why(cache, key)).toBe("admitted");
    proxy.silenceAll();
    await accounts.keys.revoke(id);
    await until("the key is no longer taken from memory", 5_000, () => {
      const found = cache.find(key);
      if (!(found instanceof Promise)) return false;
      found.catch(() => {}); // the pool's connections are silent, too
      return true;
    });
    proxy[Symbol.dispose]();
  });

  test("with the first reason in the service's order if several apply", async () => {
    await using cache = await openCache();
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    await database.pool.query("update accounts set exhausted_until = 'infinity' where id = $1", [accountId]);
    await database.pool.query(
      "update subscriptions set ended_at = date_trunc('milliseconds', now()) where account_id = $1",
      [accountId],
    );
    expect(await why(cache, key)).toBe("no_package");
    await accounts.users.setBlocked(userId, true);
    await until("the user's block is reported first", 1_000, async () => (await why(cache, key)) === "user-blocked");
    await accounts.keys.revoke(id);
    await until("the revocation is reported first", 1_000, async () => (await why(cache, key)) === "revoked");
  });
});

test("expiry, limits and packages end by the clock without a change in the database [S14.1 S16.9]", async () => {
  const nowMs = Date.now();
  const clock = new VirtualClock(nowMs);
  await using cache = await openCache({ trustMsMax: 100 * hourMs }, clock);
  const { key, id } = await accounts.keys.create(userId, { name: "ci", expiresMs: nowMs + 2 * hourMs });
  const limitUntil = new Date(nowMs + hourMs).toISOString();
  await database.pool.query("update api_keys set limit_reached_until = $2 where id = $1", [id, limitUntil]);
  expect(await why(cache, key)).toBe("blocked-by-limit");
  clock.advance(hourMs);
  expect(await why(cache, key)).toBe("admitted"); // a new billing period began
  clock.advance(hourMs);
  expect(await why(cache, key)).toBe("expired");
});

test("a request that was accepted before its package began is refused, even if its key is looked up later", async () => {
  await using cache = await openCache();
  const { key } = await accounts.keys.create(userId, { name: "ci" });
  const { rows } = await database.pool.query<{ ms: number }>(
    "select (extract(epoch from min(started_at)) * 1000)::float8 as ms from subscriptions where account_id = $1",
    [accountId],
  );
  const beganMs = rows[0]!.ms;
  for (const asked of ["from the database", "from memory"]) {
    expect([asked, await cache.find(key, beganMs - 1)]).toMatchObject([asked, { refused: "no_package" }]);
    expect([asked, await cache.find(key, beganMs)]).toMatchObject([asked, { accountId }]);
  }
});

test("the caller of an account with exhausted quota is known", async () => {
  await using cache = await openCache();
  const { key } = await accounts.keys.create(userId, { name: "ci" });
  await database.pool.query("update accounts set exhausted_until = 'infinity' where id = $1", [accountId]);
  expect(await cache.find(key)).toMatchObject({ refused: "insufficient_quota", caller: { accountId } });
});

test("while the database is away, cached keys work until `trustMsMax`, and other keys get `overloaded` with a retry time [C4]", async () => {
  using folder = temporaryFolder();
  const running = await startEmbeddedServer(folder.path, systemClock, silent);
  await using away = await openDatabase(
    { stateDir: folder.path, databaseUrl: urlOf(running, "weiche") },
    systemClock,
    silent,
  );
  const here = createAccounts({ database: away, clock: systemClock, portalUrl: "" });
  const { ownerUserId } = await here.create({ name: "A", ownerEmail: "a@example.com", package: "Starter" });
  const { key } = await here.keys.create(asId(ownerUserId), { name: "ci" });
  const clock = new VirtualClock(Date.now());
  await using cache = await openCache({ hints: false }, clock, away);
  expect(await why(cache, key)).toBe("admitted");

  expect(cache.ageMs).toBe(0);
  await running[Symbol.asyncDispose]();
  clock.advance(600_000);
  expect(cache.ageMs).toBe(600_000);
  expect(await why(cache, key)).toBe("admitted");
  const asked = cache.find(makeApiKey()) as Promise<Caller | KeyRefusal>;
  await expect(asked).rejects.toThrow(ApiError);
  await expect(asked).rejects.toMatchObject({ kind: "overloaded", retryAfterSeconds: 30 });
  clock.advance(1);
  await expect(cache.find(key)).rejects.toMatchObject({ kind: "overloaded" });

  await using _again = await startEmbeddedServer(folder.path, systemClock, silent);
  expect(await why(cache, key)).toBe("admitted");
});
