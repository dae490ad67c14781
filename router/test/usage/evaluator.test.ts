import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createJobs } from "@weiche/shared/time/job.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { judge, lookUpKey } from "../../src/keys/cached-key.ts";
import { hashApiKey } from "../../src/keys/api-key.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import { createEvaluator, type Evaluation, type Evaluator } from "../../src/usage/evaluator.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import type { Database } from "../../src/db/database.ts";
import { jobOfOneRouter } from "../../src/db/lease.ts";
import { startDatabaseServer, until, type DatabaseServer } from "../db/database-fixture.ts";
import { makeRecord } from "./usage-records.ts";
import { keysOf } from "../accounts/whole-lists.ts";

const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
const quota = 5_000_000;
let server: DatabaseServer;
let database: Database;
let clock: VirtualClock;
let accounts: Accounts;
let evaluator: Evaluator;
let accountId: AccountId;
let userId: UserId;
let key: string;
let keyId: KeyId;
let count = 0;
let evaluations: Evaluation[];
let failures: unknown[];
beforeAll(async () => {
  server = await startDatabaseServer();
  database = await server.newDatabase();
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  clock = new VirtualClock(berlin("2026-11-14T10:30"));
  accounts = createAccounts({ database, clock, portalUrl: "https://portal.example" });
  [evaluations, failures] = [[], []];
  evaluator = openEvaluator(database);
  const account = await accounts.create({ name: "A", ownerEmail: `owner${++count}@example.com`, package: "Starter" });
  accountId = account.id;
  userId = asId(account.ownerUserId);
  ({ key, id: keyId } = await accounts.keys.create(userId, { name: "ci" }));
  clock.advance(1_000);
});

afterEach(async () => {
  await database.pool.query("delete from subscriptions"); // nothing to evaluate there for the tests that follow
});

function openEvaluator(of: Database): Evaluator {
  const creditsEvaluated = (evaluation: Evaluation) => void evaluations.push(evaluation);
  return createEvaluator(of, clock, accounts.subscriptions, { creditsEvaluated });
}

const forwardTo = (text: string) => clock.advance(berlin(text) - clock.now());

/** Whole credits, spent now. */
async function spend(credits: number, by: KeyId = keyId, byUser: UserId = userId): Promise<UsageRecord> {
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

/** How a request with the key is met now. */
async function met(value = key): Promise<string> {
  const { key: cached } = await lookUpKey(database.pool, hashApiKey(value));
  const judged = judge(cached!, clock.now());
  return "refused" in judged ? ("why" in judged ? judged.why : judged.refused) : "admitted";
}

async function notices(): Promise<string[]> {
  const { rows } = await database.pool.query<{ kind: string }>(
    "select kind from notices where account_id = $1 order by event, length(kind), kind",
    [accountId],
  );
  return rows.map(({ kind }) => kind);
}

async function spendAndEvaluate(credits: number): Promise<string> {
  await spend(credits);
  await evaluator.evaluate();
  return met();
}

test("what turns out to be void counts for no quota and no limit: account and key are free again", async () => {
  await accounts.keys.update(keyId, { creditLimit: millicredits(1_000_000n) });
  await spend(10);
  const record = await spend(quota);
  await evaluator.evaluate();
  expect(await met()).not.toBe("admitted");
  const voided = { ...record, outcome: "void", promptTokens: 0, completionTokens: 0 } as const;
  expect(await commitUsage(database.pool, [{ node: asId("node-1"), record: voided }])).toMatchObject({ voided: 1 });
  await evaluator.evaluate();
  expect(await met()).toBe("admitted");
});

describe("package quota", () => {
  test("available, usage reaches 75 % and 90 %: available, a notice each, once per period", async () => {
    expect(await spendAndEvaluate(quota * 0.75 - 1)).toBe("admitted");
    expect(await notices()).toEqual([]);
    expect(await spendAndEvaluate(1)).toBe("admitted");
    expect(await notices()).toEqual(["quota-75"]);
    expect(await spendAndEvaluate(quota * 0.15)).toBe("admitted");
    await evaluator.evaluate();
    expect(await notices()).toEqual(["quota-75", "quota-90"]);
    forwardTo("2026-12-14T00:00");
    await spendAndEvaluate(quota * 0.75);
    expect(await notices()).toEqual(["quota-75", "quota-90", "quota-75"]);
  });

  test("available, usage reaches 100 %: exhausted from the next evaluation on", async () => {
    await spend(quota - 1);
    await spend(1);
    expect(await met()).toBe("admitted"); // single requests pass until then
    await evaluator.evaluate();
    expect(await met()).toBe("insufficient_quota");
    expect(await notices()).toEqual(["quota-75", "quota-90", "quota-100"]);
  });

  test("what passes over 100 % counts, at no extra cost", async () => {
    await spendAndEvaluate(quota + 123);
    await spend(77); // a stream that was running
    const { rows } = await database.pool.query(
      "select credits from usage_totals where account_id = $1 and scope = 'account'",
      [accountId],
    );
    expect(rows).toEqual([{ credits: BigInt(quota + 200) * 1000n }]);
    forwardTo("2026-12-13T23:59");
    await evaluator.evaluate();
    expect((await accounts.subscriptions.invoice(accountId)).map(({ amountCents }) => amountCents)).toEqual([700]);
  });

  test("exhausted, a new billing period begins: available at once, with the full quota", async () => {
    await spendAndEvaluate(quota);
    forwardTo("2026-12-13T23:59:59.999");
    expect(await met()).toBe("insufficient_quota");
    forwardTo("2026-12-14T00:00");
    expect(await met()).toBe("admitted");
    expect(await spendAndEvaluate(quota - 1)).toBe("admitted");
    expect(await spendAndEvaluate(1)).toBe("insufficient_quota");
  });

  test("exhausted, upgrade to a larger package: available at once, and what was used stays used", async () => {
    await spendAndEvaluate(quota + 5);
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Pro" });
    expect(await met()).toBe("admitted");
    expect(await spendAndEvaluate(75_000_000 - 6)).toBe("admitted");
    expect(await spendAndEvaluate(1)).toBe("insufficient_quota");
  });

  test("an upgrade is never undone by an evaluation that began before it", async () => {
    await spend(quota);
    for (let n = 0; n < 5; n++) {
      const fresh = await accounts.create({ name: "B", ownerEmail: `b${++count}@example.com`, package: "Starter" });
      const own = await accounts.keys.create(asId(fresh.ownerUserId), { name: "ci" });
      accountId = fresh.id;
      await spend(quota, own.id, asId(fresh.ownerUserId));
      await Promise.all([
        ...Array.from({ length: 3 }, () => evaluator.evaluate()),
        accounts.subscriptions.change(fresh.id, { action: "upgrade", package: "Pro" }),
      ]);
      expect(await met(own.key)).toBe("admitted");
    }
  });
});

describe("API key", () => {
  const limit = millicredits(1_000_000n);

  test("active, its credit limit exceeded: blocked by limit from the next evaluation on", async () => {
    await accounts.keys.update(keyId, { creditLimit: limit });
    expect(await spendAndEvaluate(999)).toBe("admitted");
    await spend(1);
    expect(await met()).toBe("admitted");
    await evaluator.evaluate();
    expect(await met()).toBe("blocked-by-limit");
    expect((await keysOf(database, userId, clock.now()))[0]).toMatchObject({ state: "blocked-by-limit" });
  });

  test("active, its user's credit limit exceeded by all keys together: every key blocked by limit", async () => {
    const other = await accounts.keys.create(userId, { name: "other" });
    const stranger = await accounts.users.create({ accountId, email: `m${count}@example.com`, role: "member" });
    const theirs = await accounts.keys.create(stranger.id, { name: "theirs" });
    await accounts.users.update(userId, { creditLimit: limit });
    await spend(500);
    await spend(500, other.id);
    await evaluator.evaluate();
    expect([await met(), await met(other.key), await met(theirs.key)]).toEqual([
      "blocked-by-limit",
      "blocked-by-limit",
      "admitted",
    ]);
  });

  test("blocked by limit, the limit raised: active at once, and while usage stays below it", async () => {
    await accounts.keys.update(keyId, { creditLimit: limit });
    await spendAndEvaluate(1_000);
    await accounts.keys.update(keyId, { creditLimit: millicredits(2_000_000n) });
    expect(await met()).toBe("admitted");
    expect(await spendAndEvaluate(999)).toBe("admitted");
    expect(await spendAndEvaluate(1)).toBe("blocked-by-limit");
    await accounts.keys.update(keyId, { creditLimit: null });
    await evaluator.evaluate();
    expect(await met()).toBe("admitted");
  });

  test("blocked by its user's limit, that limit raised: active at once", async () => {
    await accounts.users.update(userId, { creditLimit: limit });
    expect(await spendAndEvaluate(1_000)).toBe("blocked-by-limit");
    await accounts.users.update(userId, { creditLimit: millicredits(2_000_000n) });
    expect(await met()).toBe("admitted");
    await evaluator.evaluate();
    expect(await met()).toBe("admitted");
  });

  test("blocked by limit, a new billing period begins: active at once, with nothing used", async () => {
    await accounts.keys.update(keyId, { creditLimit: limit });
    await spendAndEvaluate(1_000);
    forwardTo("2026-12-14T00:00");
    expect(await met()).toBe("admitted");
    expect(await spendAndEvaluate(999)).toBe("admitted");
    expect(await spendAndEvaluate(1)).toBe("blocked-by-limit");
  });

  test("regenerated: the new key's usage against its limit starts at 0", async () => {
    await accounts.keys.update(keyId, { creditLimit: limit });
    await spendAndEvaluate(1_000);
    const fresh = await accounts.keys.regenerate(keyId);
    await evaluator.evaluate();
    expect(await met(fresh.key)).toBe("admitted");
    expect(await met()).toBe("revoked");
    await spend(1_000, fresh.id);
    await evaluator.evaluate();
    expect(await met(fresh.key)).toBe("blocked-by-limit");
  });

  test("with a limit of nothing is blocked without having been used", async () => {
    await accounts.keys.update(keyId, { creditLimit: millicredits(0n) });
    await evaluator.evaluate();
    expect(await met()).toBe("blocked-by-limit");
  });

  test("whose limit was exceeded in a trial is active in the period that an upgrade begins", async () => {
    const account = await accounts.create({ name: "T", ownerEmail: `t${count}@example.com` });
    await accounts.subscriptions.change(account.id, { action: "trial" });
    accountId = account.id;
    userId = asId(account.ownerUserId);
    ({ key, id: keyId } = await accounts.keys.create(userId, { name: "ci", creditLimit: limit }));
    expect(await spendAndEvaluate(1_000)).toBe("blocked-by-limit");
    await accounts.subscriptions.change(account.id, { action: "upgrade", package: "Pro" });
    await evaluator.evaluate();
    expect(await met()).toBe("admitted");
  });
});

describe("evaluations", () => {
  test("two at once find the same, and each notice once", async () => {
    const other = openEvaluator(await server.openAgain(database));
    await spend(quota);
    const found = await Promise.all([evaluator, other, evaluator, other].map((each) => each.evaluate()));
    expect(found.reduce((sum, { notices: fresh }) => sum + fresh, 0)).toBe(3);
    expect(found.reduce((sum, { changed }) => sum + changed, 0)).toBe(1);
    expect(await met()).toBe("insufficient_quota");
  });

  test("one router does them each minute, another when it is gone", async () => {
    const routers = [startRouter(database), startRouter(await server.openAgain(database))];
    await spend(quota);
    for (const minute of [1, 2, 3]) await tickUntil(minute);
    await Promise.all(routers.map((router) => router[Symbol.asyncDispose]())); // whatever still runs ends
    expect(evaluations.length).toBe(3);
    expect(failures).toEqual([]);
    expect(await met()).toBe("insufficient_quota");
    await using _another = startRouter(database);
    await tickUntil(4);
    await database.pool.query("update leases set holder = $1, held_until = now()", [uuidv7(clock)]); // killed a while ago
    await tickUntil(5);
  });

  test("change nothing and tell nobody when there is nothing new", async () => {
    await spendAndEvaluate(quota);
    const number = async () => (await database.pool.query("select number from change_counter")).rows[0] as unknown;
    const before = await number();
    expect(await evaluator.evaluate()).toMatchObject({ changed: 0, notices: 0 });
    expect(await number()).toEqual(before);
  });

  test("of the other accounts go on when the charge of one fails", async () => {
    const other = await accounts.create({ name: "B", ownerEmail: `b${count}@example.com`, package: "Starter" });
    const broken = `check (account_id <> '${other.id}' or period_start < '2026-12-01') not valid`;
    await database.pool.query("update accounts set next_charge_at = 'epoch' where id = $1", [other.id]); // the first
    await database.pool.query(`alter table invoice_lines add constraint broken ${broken}`);
    forwardTo("2026-12-14T00:00");
    await spend(quota);
    await expect(evaluator.evaluate()).rejects.toThrow("broken");
    await database.pool.query("alter table invoice_lines drop constraint broken");
    expect((await accounts.subscriptions.invoice(accountId)).length).toBe(2);
    expect(await met()).toBe("insufficient_quota");
    await evaluator.evaluate();
    expect((await accounts.subscriptions.invoice(other.id)).length).toBe(2);
  });

  test("write the invoice lines of periods that have begun", async () => {
    forwardTo("2027-01-14T00:00");
    await evaluator.evaluate();
    expect((await accounts.subscriptions.invoice(accountId)).length).toBe(3);
  });
});

/** As far as evaluations go. */
function startRouter(of: Database): AsyncDisposable {
  const events = { jobRan() {}, jobFailed: (_name: string, error: unknown) => void failures.push(error) };
  const job = jobOfOneRouter(
    createJobs(clock, () => 0.5, events),
    of.pool,
    uuidv7(clock),
  );
  const own = openEvaluator(of);
  return job("credits", 60_000, () => own.evaluate());
}

/** A minute passes; waits for what it sets off in the real database. */
async function tickUntil(evaluationsMin: number): Promise<void> {
  await clock.advanceAsync(60_000);
  await until("an evaluation", 10_000, () => evaluations.length >= evaluationsMin);
}
