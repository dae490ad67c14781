import { describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { servicePackages } from "@weiche/shared/packages.ts";
import { asId } from "@weiche/shared/ids.ts";
import { publishPackages } from "../../src/subscriptions/publish-packages.ts";
import { accountsToEvaluate } from "../../src/usage/evaluate-account.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { keysOf } from "../accounts/whole-lists.ts";
import {
  accountId,
  accountPerTest,
  accounts,
  clock,
  database,
  evaluator,
  forwardTo,
  keyId,
  met,
  newAccount,
  notices,
  quota,
  spend,
  spendAndEvaluate,
  userId,
} from "./evaluator-rig.ts";

await accountPerTest();

test("usage that becomes void does not count: account and key are admitted again", async () => {
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

test.each([
  ["quota", { by: "insufficient_quota", credits: quota, creditLimit: undefined }],
  ["limit of a key", { by: "blocked-by-limit", credits: 1_000, creditLimit: millicredits(1_000_000n) }],
])("the %s is enforced until the end of the longest trial", async (_, { by, credits, creditLimit }) => {
  const trialOfAYear = servicePackages.map(({ versions: [terms], ...entry }) => {
    return { ...entry, versions: [terms!, { ...terms!, validFromMs: clock.now(), trialDays: 366 }] };
  });
  await publishPackages(database, trialOfAYear, clock.now());
  await newAccount({ creditLimit });
  await accounts.subscriptions.change(accountId, { action: "trial" });
  forwardTo("2027-11-14T10:30");
  expect(await accountsToEvaluate(database.pool, clock.now())).not.toContain(accountId); // no usage yet
  expect(await spendAndEvaluate(credits - 1)).toBe("admitted");
  expect(await spendAndEvaluate(1)).toBe(by);
});

describe("a package's quota", () => {
  test("at 75 % and 90 % stays available and adds one notice each per period [S15.1]", async () => {
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

  test("at 100 % is exhausted from the next evaluation on [S15.2]", async () => {
    await spend(quota - 1);
    await spend(1);
    expect(await met()).toBe("admitted"); // requests are admitted until the next evaluation
    await evaluator.evaluate();
    expect(await met()).toBe("insufficient_quota");
    expect(await notices()).toEqual(["quota-75", "quota-90", "quota-100"]);
  });

  test("usage beyond 100 % is counted but not charged [S15.4]", async () => {
    await spendAndEvaluate(quota + 123);
    await spend(77); // by a stream that was already running
    const { rows } = await database.pool.query(
      "select credits from usage_totals where account_id = $1 and scope = 'account'",
      [accountId],
    );
    expect(rows).toEqual([{ credits: BigInt(quota + 200) * 1000n }]);
    forwardTo("2026-12-13T23:59");
    await evaluator.evaluate();
    expect((await accounts.subscriptions.invoice(accountId)).map(({ amountCents }) => amountCents)).toEqual([700]);
  });

  test("is available again at once when a new billing period begins [S15.5]", async () => {
    await spendAndEvaluate(quota);
    forwardTo("2026-12-13T23:59:59.999");
    expect(await met()).toBe("insufficient_quota");
    forwardTo("2026-12-14T00:00");
    expect(await met()).toBe("admitted");
    expect(await spendAndEvaluate(quota - 1)).toBe("admitted");
    expect(await spendAndEvaluate(1)).toBe("insufficient_quota");
  });

  test("is available at once after an upgrade, and its usage still counts [S15.6]", async () => {
    await spendAndEvaluate(quota + 5);
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Pro" });
    expect(await met()).toBe("admitted");
    expect(await spendAndEvaluate(75_000_000 - 6)).toBe("admitted");
    expect(await spendAndEvaluate(1)).toBe("insufficient_quota");
  });

  test("an evaluation that began before an upgrade does not undo it", async () => {
    await spend(quota);
    for (let n = 0; n < 5; n++) {
      await newAccount({ package: "Starter" });
      await spend(quota);
      await Promise.all([
        ...Array.from({ length: 3 }, () => evaluator.evaluate()),
        accounts.subscriptions.change(accountId, { action: "upgrade", package: "Pro" }),
      ]);
      expect(await met()).toBe("admitted");
    }
  });
});

describe("an API key", () => {
  const limit = millicredits(1_000_000n);

  test("beyond its credit limit is blocked from the next evaluation on [S14.4]", async () => {
    await accounts.keys.update(keyId, { creditLimit: limit });
    expect(await spendAndEvaluate(999)).toBe("admitted");
    await spend(1);
    expect(await met()).toBe("admitted");
    await evaluator.evaluate();
    expect(await met()).toBe("blocked-by-limit");
    expect((await keysOf(database, userId, clock.now()))[0]).toMatchObject({ state: "blocked-by-limit" });
  });

  test("is blocked if all keys of its user together exceed the user's credit limit [S14.4]", async () => {
    const other = await accounts.keys.create(userId, { name: "other" });
    const stranger = await accounts.users.create({ accountId, email: "stranger@example.com", role: "member" });
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

  test("is active at once when its limit is raised, and stays active below the new limit [S14.5]", async () => {
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

  test("is active at once when its user's limit is raised [S14.5]", async () => {
    await accounts.users.update(userId, { creditLimit: limit });
    expect(await spendAndEvaluate(1_000)).toBe("blocked-by-limit");
    await accounts.users.update(userId, { creditLimit: millicredits(2_000_000n) });
    expect(await met()).toBe("admitted");
    await evaluator.evaluate();
    expect(await met()).toBe("admitted");
  });

  test("is active at once with no usage when a new billing period begins [S14.5 S19.10]", async () => {
    await accounts.keys.update(keyId, { creditLimit: limit });
    await spendAndEvaluate(1_000);
    forwardTo("2026-12-14T00:00");
    expect(await met()).toBe("admitted");
    expect(await spendAndEvaluate(999)).toBe("admitted");
    expect(await spendAndEvaluate(1)).toBe("blocked-by-limit");
  });

  test("that is regenerated starts with no usage against its limit [S14.7]", async () => {
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

  test("with a limit of 0 is blocked before its first use", async () => {
    await accounts.keys.update(keyId, { creditLimit: millicredits(0n) });
    await evaluator.evaluate();
    expect(await met()).toBe("blocked-by-limit");
  });

  test("that exceeded its limit in a trial is active after an upgrade begins a new period", async () => {
    await newAccount({ creditLimit: limit });
    await accounts.subscriptions.change(accountId, { action: "trial" });
    expect(await spendAndEvaluate(1_000)).toBe("blocked-by-limit");
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Pro" });
    await evaluator.evaluate();
    expect(await met()).toBe("admitted");
  });
});
