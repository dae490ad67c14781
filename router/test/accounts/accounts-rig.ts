/** Accounts over a database, on virtual time. */
import { beforeEach } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId, type UserId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { RequestError } from "../../src/rights/request-error.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases, type TestDatabases } from "../db/database-fixture.ts";

export const nowMs = Date.parse("2026-01-31T14:00:00+01:00");
export let server: TestDatabases;
export let database: Database;
export let clock: VirtualClock;
export let accounts: Accounts;
export let userId: UserId;
export let count = 0;

/** Gives each test of a file a new user of an account without a package. Await this once in a file. */
export async function userPerTest(): Promise<void> {
  server = await forThisFile(testDatabases());
  database = await server.newDatabase();
  beforeEach(async () => {
    clock = new VirtualClock(nowMs);
    accounts = createAccounts({ database, clock, portalUrl: "https://portal.example/" });
    userId = asId((await accounts.create({ name: "ACME", ownerEmail: `owner${++count}@example.com` })).ownerUserId);
  });
}

/** Returns the kind and the message of the refusal. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof RequestError)) throw error;
  return `${error.kind}: ${error.message}`;
}

export function set(table: string, id: string, column: string, value: unknown) {
  return database.pool.query(`update ${table} set ${column} = $2 where id = $1`, [id, value]);
}
