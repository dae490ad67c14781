/** Key caches over a database, with a new account for each test. */
import { beforeEach } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import {
  createKeyCache,
  type KeyCacheEvents,
  type KeyCacheOptions,
  type OpenKeyCache,
} from "../../src/callers/key-cache.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases, type TestDatabases } from "../db/database-fixture.ts";

/** The duration of each poll in the database. */
export const readsMs: number[] = [];
const events: KeyCacheEvents = {
  keyChangesRead: (durationMs) => void readsMs.push(durationMs),
  keyChangesUnreadable() {},
  keyLookupFailed() {},
};
export const hourMs = 3_600_000;
export let server: TestDatabases;
export let database: Database;
export let accounts: Accounts;
/** The account of the running test; it has the package Pro. */
export let accountId: AccountId;
/** The account's Owner. */
export let userId: UserId;
let count = 0;

/** Opens the database and gives each test an account. Await this once in a file. */
export async function keyCachesOfFile(): Promise<void> {
  server = await forThisFile(testDatabases());
  database = await server.newDatabase();
  accounts = createAccounts({ database, clock: systemClock, portalUrl: "https://portal.example" });
  beforeEach(async () => {
    const account = await accounts.create({ name: "ACME", ownerEmail: `owner${++count}@example.com`, package: "Pro" });
    accountId = account.id;
    userId = asId<UserId>(account.ownerUserId);
  });
}

export function openCache(options?: KeyCacheOptions, clock = systemClock, of = database): Promise<OpenKeyCache> {
  return createKeyCache(of, clock, events, options);
}

/** Returns why the key is refused, or `admitted`. */
export async function why(cache: OpenKeyCache, key: string): Promise<string> {
  const found = await cache.find(key);
  return "refused" in found ? ("why" in found ? found.why : found.refused) : "admitted";
}
