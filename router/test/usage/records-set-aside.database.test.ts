/** Usage that is not billed is set aside with its reason, visible to operators, and delays no other usage. */
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import { forgetSetAside, listSetAside, storeSetAside } from "../../src/usage/records-set-aside.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases } from "../db/database-fixture.ts";
import { granted, grantedNode as node, grants, idOf, makeRecord, sumOf, sumsOf } from "./usage-records.ts";

const nowMs = Date.parse("2026-11-21T12:00:00Z");
const clock = { ...systemClock, now: () => nowMs };
let database: Database;
const server = await forThisFile(testDatabases());
beforeEach(async () => {
  database = await server.newDatabase();
});

async function openLedger() {
  const told: [string, string, number][] = [];
  const ledger = await createUsageLedger(
    database,
    clock,
    {
      usageCommitted() {},
      usageCommitFailed() {},
      usageSetAside: (from, reason, records) => void told.push([from, reason, records]),
    },
    { grants },
  );
  return { told, ledger };
}

function records(count: number, seed = 1): UsageRecord[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => makeRecord(random, nowMs - random.below(3_600_000)));
}

async function expectSums(expected: readonly UsageRecord[]): Promise<void> {
  const sum = sumOf(expected);
  const sums = await sumsOf(database);
  expect(sums).toEqual({ records: sum, account: sum, user: sum, key: sum, model: sum, days: sum });
}

const listed = (more: { node?: string } = {}) => listSetAside(database.pool, { limit: 1_000, ...more });

describe("records whose sum would overflow an account's totals", () => {
  /** Records of 0.86 · 10^18 millicredits each; a total holds 9.2 · 10^18. */
  const huge = (seed: number) =>
    records(11, seed).map((one) => {
      const tokens = 2 ** 31 - 1;
      const factor = millicredits(200_000_000n);
      const counts = { promptTokens: tokens, completionTokens: tokens, tokensMax: 2 * tokens };
      return granted({ ...one, accountId: idOf("a", 0), factor, ...counts });
    });

  test("are set aside, and other usage of this and all accounts is committed [A7]", async () => {
    const { ledger, told } = await openLedger();
    const honest = records(300);
    await Promise.all([ledger.record(node, huge(2)), ledger.record(node, honest.slice(0, 150))]);
    await ledger.record(node, honest.slice(150));
    await expectSums(honest);
    expect(told).toEqual([[node, "too-expensive", 11]]);
    expect((await listed()).map(({ reason }) => reason)).toEqual(Array.from({ length: 11 }, () => "too-expensive"));
    await ledger[Symbol.asyncDispose]();
  });

  test("are set aside one by one if the totals are full, and records of other accounts are committed [A7]", async () => {
    const { ledger, told } = await openLedger();
    const [first] = records(1, 3).map((one) => granted({ ...one, accountId: idOf("a", 0) }));
    await ledger.record(node, [first!]);
    await database.pool.query("update usage_totals set credits = 9223372036854775807 where scope = 'account'");
    const all = records(100, 4);
    await ledger.record(node, all);
    const bad = all.filter(({ accountId }) => accountId === idOf("a", 0));
    expect(bad.length).toBeGreaterThan(10);
    const good = sumOf(all.filter(({ accountId }) => accountId !== idOf("a", 0)));
    const { rows } = await database.pool.query(
      "select count(*) as requests from usage_records where account_id <> $1",
      [idOf("a", 0)],
    );
    expect(rows).toEqual([{ requests: good.requests }]);
    expect((await listed()).map(({ requestId }) => requestId).toSorted()).toEqual(
      bad.map(({ requestId }) => requestId as string).toSorted(),
    );
    expect((await listed()).every(({ detail }) => detail === "bigint out of range")).toBe(true);
    expect(told.reduce((sum, [, , count]) => sum + count, 0)).toBe(bad.length);
    await ledger[Symbol.asyncDispose]();
  });

  test("are refused by a constraint of the database, too", async () => {
    const { ledger } = await openLedger();
    await ledger.record(node, records(1));
    await expect(
      database.pool.query(
        "update usage_records set prompt_tokens = 2147483647, completion_tokens = 0, factor = 465662, credits = 2147483647::bigint * 465662",
      ),
    ).rejects.toMatchObject({ constraint: "usage_records_credits_max" });
    await ledger[Symbol.asyncDispose]();
  });
});

test("a record set aside keeps the node's values and the reason", async () => {
  const { ledger } = await openLedger();
  const [one, other] = records(2);
  const wrong = {
    ...one!,
    model: `a\n${"b".repeat(100)}\u0000`,
    promptTokens: NaN,
    completionTokens: 1.5,
  } as UsageRecord;
  const unreadable = { requestId: "42", attempt: 0, accountId: "", factorMillicredits: "18446744073709551615" };
  await ledger.record(
    node,
    [wrong, { ...other!, grant: "" }],
    [{ reason: "attempt is out of range", record: unreadable }],
  );
  const rows = await listed();
  expect(rows).toHaveLength(3);
  expect(rows).toContainEqual({
    ...{ at: "2026-11-21T12:00:00.000Z", node, reason: "malformed", detail: null },
    ...{ requestId: one!.requestId, attempt: 1, accountId: one!.accountId, userId: one!.userId, keyId: one!.keyId },
    ...{ model: `a?${"b".repeat(62)}`, factor: String(one!.factor), promptTokens: "NaN", completionTokens: "1.5" },
    ...{ source: "engine", outcome: "finished" },
  });
  expect(rows).toContainEqual(expect.objectContaining({ requestId: other!.requestId, reason: "no-grant" }));
  expect(rows).toContainEqual(
    expect.objectContaining({
      ...{ requestId: "42", reason: "unreadable", detail: "attempt is out of range" },
      factor: "18446744073709551615",
    }),
  );
  expect(await listed({ node: "another" })).toEqual([]);
  await ledger[Symbol.asyncDispose]();
});

test("a record is set aside once, and kept as long as usage records", async () => {
  const { ledger } = await openLedger();
  const [one] = records(1);
  for (let times = 0; times < 3; times++) await ledger.record(node, [{ ...one!, grant: "" }]);
  expect(await listed()).toHaveLength(1);
  await forgetSetAside(database.pool, nowMs);
  expect(await listed()).toHaveLength(1);
  await forgetSetAside(database.pool, nowMs + 1);
  expect(await listed()).toEqual([]);
  await ledger[Symbol.asyncDispose]();
});

test("at most 10,000 records are kept per node, and other nodes' records are not affected", async () => {
  const refusedBy = (name: string, count: number, seed: number) =>
    records(count, seed).map((record) => ({
      node: asId<NodeId>(name),
      record,
      setAside: { reason: "no-grant" as const },
    }));
  for (let seed = 1; seed <= 22; seed++) await storeSetAside(database.pool, refusedBy("liar", 500, seed), nowMs);
  await storeSetAside(database.pool, [...refusedBy("liar", 1, 30), ...refusedBy("honest", 2, 31)], nowMs);
  const { rows } = await database.pool.query("select node, count(*) from usage_refused group by node order by node");
  expect(rows).toEqual([
    { node: "honest", count: 2n },
    { node: "liar", count: 10_000n },
  ]);
});
