/** The evaluation of usage over a database, on virtual time. */
import { afterEach, beforeEach } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { judge, lookUpKey } from "../../src/callers/cached-key.ts";
import { hashApiKey } from "../../src/callers/api-key.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import { createEvaluator, type Evaluation, type Evaluator } from "../../src/usage/evaluator.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases, type TestDatabases } from "../db/database-fixture.ts";
import { makeRecord } from "./usage-records.ts";

const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
export const quota = 5_000_000;
export let server: TestDatabases;
export let database: Database;
export let clock: VirtualClock;
export let accounts: Accounts;
export let evaluator: Evaluator;
export let accountId: AccountId;
export let userId: UserId;
let key: string;
export let keyId: KeyId;
let count = 0;
export let evaluations: Evaluation[];
export let failures: unknown[];

/** Gives each test of a file an account with the package Starter and one key. Await this once in a file. */
export async function accountPerTest(): Promise<void> {
  server = await forThisFile(testDatabases());
  database = await server.newDatabase();
  beforeEach(async () => {
    clock = new VirtualClock(berlin("2026-11-14T10:30"));
    accounts = createAccounts({ database, clock, portalUrl: "https://portal.example" });
    [evaluations, failures] = [[], []];
    evaluator = openEvaluator(database);
    await newAccount({ package: "Starter" });
    clock.advance(1_000);
  });

  afterEach(async () => {
    await database.pool.query("delete from subscriptions"); // the next tests must not evaluate this account
  });
}

/** Makes a new account and key for the rest of the test. */
export async function newAccount(wish: { readonly package?: string; readonly creditLimit?: Millicredits }) {
  const ownerEmail = `owner${++count}@example.com`;
  const account = await accounts.create({ name: "A", ownerEmail, package: wish.package });
  accountId = account.id;
  userId = asId(account.ownerUserId);
  ({ key, id: keyId } = await accounts.keys.create(userId, { name: "ci", creditLimit: wish.creditLimit }));
}

export function openEvaluator(of: Database): Evaluator {
  const creditsEvaluated = (evaluation: Evaluation) => void evaluations.push(evaluation);
  return createEvaluator(of, clock, accounts.subscriptions, { creditsEvaluated });
}

export const forwardTo = (text: string) => clock.advance(berlin(text) - clock.now());

/** Books usage of whole credits now. */
export async function spend(credits: number, by: KeyId = keyId, byUser: UserId = userId): Promise<UsageRecord> {
  await makeUsageDays(database.pool, [clock.now()]);
  const record = makeRecord(createRandom(1), clock.now(), {
    requestId: asId(uuidv7(clock)),
    accountId,
    userId: byUser,
    keyId: by,
    promptTokens: credits,
    completionTokens: 0,
    factor: millicredits(1000n),
  });
  await commitUsage(database.pool, [{ node: asId("node-1"), record }]);
  return record;
}

/** Returns why a request with the key is refused now, or `admitted`. */
export async function met(value = key): Promise<string> {
  const { key: cached } = await lookUpKey(database.pool, hashApiKey(value));
  const judged = judge(cached!, clock.now());
  return "refused" in judged ? ("why" in judged ? judged.why : judged.refused) : "admitted";
}

export async function notices(): Promise<string[]> {
  const { rows } = await database.pool.query<{ kind: string }>(
    "select kind from notices where account_id = $1 order by event, length(kind), kind",
    [accountId],
  );
  return rows.map(({ kind }) => kind);
}

export async function spendAndEvaluate(credits: number): Promise<string> {
  await spend(credits);
  await evaluator.evaluate();
  return met();
}
