/** Connections to the database that go silent: requests that need the database are answered or refused soon. */
import { beforeAll, beforeEach, afterEach, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type UserId } from "@weiche/shared/ids.ts";
import { createKeyCache, type OpenKeyCache } from "../../src/callers/key-cache.ts";
import { createLoginThrottle } from "../../src/sign-in/login-throttle.ts";
import { createSessions, startSession } from "../../src/sign-in/sessions.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { inTransaction, openDatabase, type Database } from "../../src/db/database.ts";
import { isUnavailable } from "../../src/db/failures.ts";
import { silent, testDatabases } from "../db/database-fixture.ts";
import { openSilentProxy, type SilentProxy } from "./silent-proxy.ts";

/** Far below the 35 s of other statements, and enough on a busy machine. */
const soonMs = 12_000;
const hourMs = 3_600_000;
let database: Database;
let accounts: Accounts;
let userId: UserId;
let proxy: SilentProxy;
let far: Database;
let cache: OpenKeyCache;
let failures = 0;

const server = await forThisFile(testDatabases());
beforeAll(async () => {
  database = await server.newDatabase();
  accounts = createAccounts({ database, clock: systemClock, portalUrl: "https://portal.example" });
  const account = await accounts.create({ name: "ACME", ownerEmail: "ada@example.com", package: "Pro" });
  userId = asId<UserId>(account.ownerUserId);
});

beforeEach(async () => {
  failures = 0;
  proxy = await openSilentProxy(database);
  far = await openDatabase({ stateDir: "", databaseUrl: proxy.url }, systemClock, silent);
  const events = { keyChangesRead() {}, keyChangesUnreadable() {}, keyLookupFailed: () => void failures++ };
  cache = await createKeyCache(far, systemClock, events, { pollMs: hourMs, hints: false });
});
afterEach(async () => {
  proxy[Symbol.dispose]();
  await cache[Symbol.asyncDispose]();
  await far[Symbol.asyncDispose]();
});

/** Opens as many connections as the pools allow, and silences them all. */
async function loseAll(): Promise<void> {
  const often = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: 8 }, work));
  await often(() => far.pool.query("select pg_sleep(0.05)"));
  await often(() => far.prompt.query({ text: "select pg_sleep(0.05)" }));
  proxy.silenceAll();
}

const freshKey = async () => (await accounts.keys.create(userId, { name: "ci" })).key;

async function soon<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${soonMs} ms`)), soonMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

test("new keys are looked up on a new connection at once", async () => {
  const keys = [await freshKey(), await freshKey()];
  await loseAll();
  expect(await soon(Promise.resolve(cache.find(keys[0]!)))).toMatchObject({ userId });
  const { connections } = proxy;
  expect(await soon(Promise.resolve(cache.find(keys[1]!)))).toMatchObject({ userId });
  expect([failures, proxy.connections]).toEqual([0, connections]);
});

test("a new key is refused soon with a retry time while new connections are silent too, and works afterwards", async () => {
  const key = await freshKey();
  await loseAll();
  proxy.isOpen = false;
  const refused = await soon(Promise.resolve(cache.find(key)).catch((error: unknown) => error as ApiError));
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused).toMatchObject({ kind: "overloaded" });
  // The router proposes the age of its known keys, at least 2 s. On a busy machine the keys are older than that.
  const { retryAfterSeconds } = refused as ApiError;
  expect(retryAfterSeconds).toBeGreaterThanOrEqual(2);
  expect(retryAfterSeconds).toBeLessThanOrEqual(Math.max(2, cache.ageMs / 1_000));
  proxy.isOpen = true;
  expect(await soon(Promise.resolve(cache.find(key)))).toMatchObject({ userId });
});

test("a session is found on a new connection, and other queries then use new connections, too", async () => {
  const { token } = await inTransaction(far, (transaction) =>
    startSession(transaction, systemClock, userId, { source: "192.0.2.7", agent: "" }),
  );
  await loseAll();
  expect(await soon(createSessions(far, systemClock).find(token))).toMatchObject({ user: { id: userId } });
  expect((await soon(far.pool.query("select 1"))).rowCount).toBe(1);
});

test("a sign-in attempt fails soon while connections are silent, and the next one succeeds", async () => {
  const throttle = createLoginThrottle(far, systemClock);
  await loseAll();
  const first = await soon(
    throttle.take("login", { source: "192.0.2.7", whom: "ada@example.com" }).catch((e: unknown) => e),
  );
  expect(isUnavailable(first)).toBe(true);
  expect(await soon(throttle.take("login", { source: "192.0.2.7", whom: "ada@example.com" }))).toMatchObject({
    waitMs: 0,
  });
});

test("changes are read on a new connection after the old one went silent, and other queries then use new ones, too", async () => {
  await using polling = await createKeyCache(
    far,
    systemClock,
    { keyChangesRead() {}, keyChangesUnreadable() {}, keyLookupFailed() {} },
    { pollMs: 50, hints: false },
  );
  await loseAll();
  const lostAt = performance.now();
  while (far.pool.idleCount > 0 && performance.now() - lostAt < soonMs)
    await new Promise((resolve) => setTimeout(resolve, 20));
  expect((await soon(far.pool.query("select 1"))).rowCount).toBe(1);
  expect(polling).toBeDefined();
});

test("concurrent sign-in attempts for one person use at most three connections", async () => {
  const { pool } = database;
  let [inUse, most] = [0, 0];
  const [acquired, released] = [() => void (most = Math.max(most, ++inUse)), () => void inUse--];
  pool.on("acquire", acquired).on("release", released);
  const throttle = createLoginThrottle(database, systemClock);
  const attempt = (n: number) => throttle.take("login", { source: `10.0.${n}.1`, whom: "ada@example.com" });
  await Promise.all(Array.from({ length: 60 }, (_, n) => attempt(n)));
  pool.off("acquire", acquired).off("release", released);
  expect([most, inUse]).toEqual([3, 0]);
});
