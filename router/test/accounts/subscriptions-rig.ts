/** Packages of accounts over a database, on virtual time. */
import { afterAll, beforeAll, beforeEach } from "vitest";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { packageUse } from "../../src/subscriptions/package-use.ts";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import type { Database } from "../../src/db/database.ts";
import { startDatabaseServer, type DatabaseServer } from "../db/database-fixture.ts";

export const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
export let server: DatabaseServer;
export let database: Database;
export let clock: VirtualClock;
export let accounts: Accounts;
export let accountId: AccountId;
export let userId: UserId;
let count = 0;

/** To be called once in a file: each test begins on 14 November 2026, with an account without a package. */
export function accountPerTest(): void {
  beforeAll(async () => {
    server = await startDatabaseServer();
    database = await server.newDatabase();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(() => begin(berlin("2026-11-14T10:30")));
}

/** Begins anew at another time. */
export async function begin(nowMs: number): Promise<void> {
  clock = new VirtualClock(nowMs);
  accounts = createAccounts({ database, clock, portalUrl: "https://portal.example" });
  const account = await accounts.create({ name: "ACME", ownerEmail: `owner${++count}@example.com` });
  accountId = account.id;
  userId = asId(account.ownerUserId);
}

export const until = (text: string) => clock.advance(berlin(text) - clock.now());

export const booked = async (id = accountId) => (await packageUse(database, id, clock.now())).subscription;
