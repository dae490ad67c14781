import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { QueryConfig, QueryResultRow } from "pg";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { hashApiKey, makeApiKey } from "../../src/keys/api-key.ts";
import type { Caller, KeyRefusal } from "../../src/keys/caller.ts";
import {
  createKeyCache,
  type KeyCacheEvents,
  type KeyCacheOptions,
  type OpenKeyCache,
} from "../../src/keys/key-cache.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { openDatabase, type Database } from "../../src/db/database.ts";
import type { PromptQueries } from "../../src/db/prompt-queries.ts";
import { startEmbeddedServer } from "../../src/db/embedded-server.ts";
import { openSilentProxy } from "../edge/silent-proxy.ts";
import {
  silent,
  startDatabaseServer,
  temporaryFolder,
  until,
  urlOf,
  type DatabaseServer,
} from "../db/database-fixture.ts";

const readsMs: number[] = [];
const events: KeyCacheEvents = {
  keyChangesRead: (durationMs) => void readsMs.push(durationMs),
  keyChangesUnreadable() {},
  keyLookupFailed() {},
};
const hourMs = 3_600_000;
let server: DatabaseServer;
let database: Database;
let accounts: Accounts;
let accountId: AccountId;
let userId: UserId;
beforeAll(async () => {
  server = await startDatabaseServer();
  database = await server.newDatabase();
  accounts = createAccounts({ database, clock: systemClock, portalUrl: "https://portal.example" });
});
afterAll(() => server[Symbol.asyncDispose]());
let count = 0;
beforeEach(async () => {
  const account = await accounts.create({ name: "ACME", ownerEmail: `owner${++count}@example.com`, package: "Pro" });
  accountId = account.id;
  userId = asId<UserId>(account.ownerUserId);
});

function openCache(options?: KeyCacheOptions, clock = systemClock, of = database): Promise<OpenKeyCache> {
  return createKeyCache(of, clock, events, options);
}

async function why(cache: OpenKeyCache, key: string): Promise<string> {
  const found = await cache.find(key);
  return "refused" in found ? ("why" in found ? found.why : found.refused) : "admitted";
}

/** How many statements of the request path ran meanwhile. */
async function queriesDuring(work: () => Promise<unknown>): Promise<number> {
  const { prompt } = database;
  const real = prompt.query;
  let queries = 0;
  Object.assign(prompt, { query: (query: QueryConfig) => (queries++, real(query)) });
  await work();
  Object.assign(prompt, { query: real });
  return queries;
}

/** Resolves once a poll has begun. */
async function nextPoll(): Promise<void> {
  const { rows } = await database.pool.query<{ now: string }>("select clock_timestamp()::text as now");
  const begun = `select from pg_stat_activity where datname = current_database() and query_start > $1
    and query like 'select c.number as latest%'`;
  await until("a poll begins", 2_000, async () => (await database.pool.query(begun, [rows[0]!.now])).rowCount! > 0);
}

/** The database over a network where the answers to key look-ups are held back until they are let go. */
function slowLookups(of: Database) {
  const waiting: (() => void)[] = [];
  const prompt: PromptQueries = {
    async query<Row extends QueryResultRow>(query: QueryConfig) {
      const answer = await of.prompt.query<Row>(query);
      if (query.name === "look-up-key") await new Promise<void>((resolve) => waiting.push(resolve));
      return answer;
    },
  };
  return {
    database: { ...of, prompt },
    waiting,
    letGo: () => waiting.splice(0).forEach((go) => go()),
  };
}

test("a key says who asks: package limits, and the models that user and key both may call", async () => {
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
  expect(cache.find(key)).toEqual(expected); // now at once

  await accounts.users.update(userId, { allowedModels: null });
  const free = await accounts.keys.create(userId, { name: "free" });
  expect(await cache.find(free.key)).toMatchObject({ allowedModels: undefined });
});

describe("is refused", () => {
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
  test.each(changes)("%s, within a second on another router", async (reason, change) => {
    const other = await server.openAgain(database);
    await using cache = await openCache({ pollMs: hourMs }, systemClock, other);
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    await until("the new key works", 1_000, async () => (await why(cache, key)) === "admitted");
    await change(id);
    await until(`the key is ${reason}`, 1_000, async () => (await why(cache, key)) === reason);
    expect(await why(cache, key)).toBe(reason);
    await other[Symbol.asyncDispose]();
  });

  test("while its account is blocked, and admitted within a second once it is unblocked", async () => {
    await using cache = await openCache({ pollMs: hourMs });
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    await accounts.life.setBlocked(accountId, true);
    await until("the key is refused", 1_000, async () => (await why(cache, key)) === "account-blocked");
    await accounts.life.setBlocked(accountId, false);
    await until("the key works", 1_000, async () => (await why(cache, key)) === "admitted");
    expect(await why(cache, key)).toBe("admitted");
  });

  test("by polling alone within five seconds, if no hint comes", async () => {
    await using cache = await openCache({ hints: false });
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    expect(await why(cache, key)).toBe("admitted");
    await accounts.keys.revoke(id);
    await until("the key is revoked", 5_000, async () => (await why(cache, key)) === "revoked");
  });

  test("within five seconds also when every connection to the database is lost without a word", async () => {
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
      found.catch(() => {}); // the pool's connections are lost, too
      return true;
    });
    proxy[Symbol.dispose]();
  });

  test("when one reason is as true as another, in the order of the service", async () => {
    await using cache = await openCache();
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    await database.pool.query("update accounts set exhausted_until = 'infinity' where id = $1", [accountId]);
    await database.pool.query(
      "update subscriptions set ended_at = date_trunc('milliseconds', now()) where account_id = $1",
      [accountId],
    );
    expect(await why(cache, key)).toBe("no_package");
    await accounts.users.setBlocked(userId, true);
    await until("the key itself comes first", 1_000, async () => (await why(cache, key)) === "user-blocked");
    await accounts.keys.revoke(id);
    await until("what is for good comes first", 1_000, async () => (await why(cache, key)) === "revoked");
  });
});

test("what ends by the clock ends without news", async () => {
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

test("a request that was accepted before the package began has none, however late its key is looked up", async () => {
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

test("an account without quota may still be known", async () => {
  await using cache = await openCache();
  const { key } = await accounts.keys.create(userId, { name: "ci" });
  await database.pool.query("update accounts set exhausted_until = 'infinity' where id = $1", [accountId]);
  expect(await cache.find(key)).toMatchObject({ refused: "insufficient_quota", caller: { accountId } });
});

describe("the database is asked", () => {
  test("never for what cannot be a key", async () => {
    await using cache = await openCache({ pollMs: hourMs, hints: false });
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    const guesses = [
      "",
      "sk-weiche-",
      "sk-other",
      `${key}x`,
      key.slice(0, -1),
      key.replace(/.$/, (last) => (last === "0" ? "1" : "0")),
    ];
    expect(await queriesDuring(() => Promise.all(guesses.map((guess) => why(cache, guess))))).toBe(0);
    expect(await Promise.all(guesses.map((guess) => why(cache, guess)))).toEqual(guesses.map(() => "unknown"));
  });

  test("once for a key that many ask for at once, and once for one that nobody has", async () => {
    await using cache = await openCache({ pollMs: hourMs, hints: false });
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    const stranger = makeApiKey();
    for (const wanted of [key, stranger]) {
      const often = () => Promise.all(Array.from({ length: 50 }, () => why(cache, wanted)));
      expect(await queriesDuring(often)).toBe(1);
      expect(await queriesDuring(often)).toBe(0);
    }
  });

  test("again for unknown keys beyond the bound, which is kept", async () => {
    await using cache = await openCache({ pollMs: hourMs, hints: false, unknownKeysMax: 3 });
    const strangers = Array.from({ length: 4 }, makeApiKey);
    for (const stranger of strangers) await why(cache, stranger);
    expect(await queriesDuring(() => why(cache, strangers[3]!))).toBe(0);
    expect(await queriesDuring(() => why(cache, strangers[0]!))).toBe(1);
  });

  test("again when a change overtakes the answer", async () => {
    const slow = slowLookups(database);
    await using cache = await openCache({ hints: false, pollMs: 20 }, systemClock, slow.database);
    const { key, id } = await accounts.keys.create(userId, { name: "ci" });
    const first = why(cache, key);
    await until("the old answer is on its way", 2_000, () => slow.waiting.length === 1);
    await accounts.keys.revoke(id);
    for (let polls = 0; polls < 2; polls++) await nextPoll(); // by the second, the first is applied
    slow.letGo();
    await until("it asks again", 2_000, () => slow.waiting.length === 1);
    slow.letGo();
    expect(await first).toBe("revoked");
  });
});

test("how long the database takes for an answer is told at each poll", async () => {
  const before = readsMs.length;
  await using _cache = await openCache({ hints: false, pollMs: 20 });
  await until("it has asked some times", 2_000, () => readsMs.length >= before + 3);
  expect(readsMs.slice(before).every((ms) => ms > 0 && ms < 5_000)).toBe(true);
});

test("a key that was unknown a moment ago works within a second", async () => {
  await using cache = await openCache({ pollMs: hourMs });
  const key = makeApiKey();
  expect(await why(cache, key)).toBe("unknown");
  await database.pool.query(
    `insert into api_keys (id, account_id, user_id, hash, last_four, name, created_at)
     values (gen_random_uuid(), $1, $2, $3, 'abcd', 'late', now())`,
    [accountId, userId, hashApiKey(key)],
  );
  await until("the new key works", 1_000, async () => (await why(cache, key)) === "admitted");
  expect(await why(cache, key)).toBe("admitted");
});

test.each([
  ["changes are missing", "delete from changes"],
  [
    "the database is an older copy",
    "update change_counter set number = number / 2; delete from changes where number > (select number from change_counter)",
  ],
])("everything is forgotten when %s", async (_what, harm) => {
  await using cache = await openCache({ hints: false, pollMs: 20 });
  const { key, id } = await accounts.keys.create(userId, { name: "ci" });
  expect(await why(cache, key)).toBe("admitted");
  await accounts.users.setBlocked(userId, false); // so that there is a change to lose
  const client = await database.pool.connect();
  await client.query("begin; alter table api_keys disable trigger keys_changed");
  await client.query("update api_keys set revoked_at = now() where id = $1", [id]);
  await client.query(
    `update change_counter set number = number + 1; ${harm}; alter table api_keys enable trigger all; commit`,
  );
  client.release();
  await until("the key is read anew", 2_000, async () => (await why(cache, key)) === "revoked");
  expect(await why(cache, key)).toBe("revoked");
});

test("while the database is away known keys go on for their time, others are told to come back", async () => {
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
  await expect(asked).rejects.toMatchObject({ kind: "overloaded", retryAfterSeconds: 2 });
  clock.advance(1);
  await expect(cache.find(key)).rejects.toMatchObject({ kind: "overloaded" });

  await using _again = await startEmbeddedServer(folder.path, systemClock, silent);
  expect(await why(cache, key)).toBe("admitted");
});
