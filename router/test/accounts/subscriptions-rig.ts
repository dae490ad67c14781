/** Packages of accounts over a database, on virtual time. */
import { beforeEach } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { packageUse } from "../../src/subscriptions/package-use.ts";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases, type TestDatabases } from "../db/database-fixture.ts";

export const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
export let server: TestDatabases;
export let database: Database;
export let clock: VirtualClock;
export let accounts: Accounts;
export let accountId: AccountId;
export let userId: UserId;
let count = 0;

/** Begins each test of a file on 14 November 2026, with an account without a package. Await this once in a file. */
export async function accountPerTest(): Promise<void> {
  server = await forThisFile(testDatabases());
  database = await server.newDatabase();
  beforeEach(() => begin(berlin("2026-11-14T10:30")));
}

/** Restarts the test at another time, with a new account. */
export async function begin(nowMs: number): Promise<void> {
  clock = new VirtualClock(nowMs);
  accounts = createAccounts({ database, clock, portalUrl: "https://portal.example" });
  const account = await accounts.create({ name: "ACME", ownerEmail: `owner${++count}@example.com` });
  accountId = account.id;
  userId = asId(account.ownerUserId);
}

export const until = (text: string) => clock.advance(berlin(text) - clock.now());

export const booked = async (id = accountId) => (await packageUse(database, id, clock.now())).subscription;
