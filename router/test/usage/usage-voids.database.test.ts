/** An answer that did not reach its client costs nothing, whether its attempt is declared void before or after its record. */
import type { Pool } from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger, type UsageLedger } from "../../src/usage/usage-ledger.ts";
import type { UsageQueueEvents } from "../../src/usage/usage-queue.ts";
import type { CommittedBatch } from "../../src/usage/usage-queue.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { readUsageTable } from "../../src/usage/usage-table.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases, until } from "../db/database-fixture.ts";
import { granted, grantedNode, grants, makeRecord, sumOf, sumsOf } from "./usage-records.ts";

const node = grantedNode;
const nowMs = Date.parse("2026-11-21T12:00:00Z");
const clock = { ...systemClock, now: () => nowMs };
let database: Database;
const server = await forThisFile(testDatabases());
beforeEach(async () => {
  database = await server.newDatabase();
});

async function openLedger(of = database, committed: CommittedBatch[] = []) {
  const events: UsageQueueEvents = {
    usageCommitted: (batch) => void committed.push(batch),
    usageCommitFailed() {},
    usageSetAside: (_node, reason) => expect.fail(`refused: ${reason}`),
  };
  return await createUsageLedger(of, clock, events, { grants });
}

function recordOf(seed: number, more: Partial<UsageRecord> = {}): UsageRecord {
  return makeRecord(createRandom(seed), nowMs - 1_000, more);
}

function voidOf(record: UsageRecord): UsageRecord {
  return { ...record, outcome: "void", promptTokens: 0, completionTokens: 0 };
}

const scopes = ["records", "account", "user", "key", "model", "days"] as const;

/** Reads every kind of sum of the database. */
async function sums() {
  const found = await sumsOf(database);
  return scopes.map((scope) => [scope, found[scope] ?? sumOf([])]);
}

function everySumOf(records: readonly UsageRecord[]) {
  return scopes.map((scope) => [scope, sumOf(records)]);
}

describe("an attempt that is declared void costs nothing", () => {
  test("if its record came first: every sum is corrected, and the row keeps the counted tokens", async () => {
    const committed: CommittedBatch[] = [];
    await using ledger = await openLedger(database, committed);
    const [lost, got] = [recordOf(1), recordOf(2)];
    await ledger.record(node, [lost, got]);
    await ledger.declareVoid([{ node, ...lost }]);
    expect(await sums()).toEqual(everySumOf([got]));
    await database.pool.query("insert into accounts (id, name, created_at) values ($1, 'one', now())", [
      lost.accountId,
    ]);
    const wish = { by: ["day"], from: "2026-11-01", to: "2026-11-30" } as const;
    expect((await readUsageTable(database, clock, lost.accountId, wish)).rows.every((row) => row.requests > 0)).toBe(
      true,
    );
    const { rows } = await database.pool.query(
      "select voided_prompt_tokens as prompt, voided_completion_tokens as completion from usage_records where outcome = 'void'",
    );
    expect(rows).toEqual([{ prompt: lost.promptTokens, completion: lost.completionTokens }]);
    expect(committed.map(({ records, repeated, voided }) => [records, repeated, voided])).toEqual([
      [2, 0, 0],
      [0, 0, 1],
    ]);
    const costOf = (record: UsageRecord) => [[record.model, sumOf([record]).credits]];
    expect(committed.map(({ voidedCredits }) => [...voidedCredits])).toEqual([[], costOf(lost)]);
    expect([...committed[1]!.credits]).toEqual([]);
  });

  test("if the declaration came first, however often its record is sent later", async () => {
    await using ledger = await openLedger();
    const lost = recordOf(1);
    await ledger.declareVoid([{ node, ...lost }]);
    for (let times = 0; times < 3; times++) await ledger.record(node, [lost]);
    expect(await sums()).toEqual(everySumOf([]));
  });

  test("if another router is committing its record and the first usage of that day", async () => {
    await using ledger = await openLedger();
    const lost = recordOf(1);
    const other = await database.pool.connect();
    await other.query("begin");
    await commitUsage(other as unknown as Pool, [{ node, record: lost }]);
    const declared = ledger.declareVoid([{ node, ...lost }]);
    await until("the declaration waits for the record", 20_000, async () => {
      const { rowCount } = await database.pool.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rowCount! > 0;
    });
    await other.query("commit");
    other.release();
    await declared;
    expect(await sums()).toEqual(everySumOf([]));
  });

  test("if record and declaration are in one batch, in either order", async () => {
    await using ledger = await openLedger();
    const [first, second] = [recordOf(1), recordOf(2)];
    await Promise.all([
      ledger.record(node, [first, voidOf(second)]),
      ledger.record(node, [second]),
      ledger.declareVoid([{ node, ...first }]),
    ]);
    expect(await sums()).toEqual(everySumOf([]));
  });

  test("if router and node declare it repeatedly", async () => {
    await using ledger = await openLedger();
    const [lost, got] = [recordOf(1), recordOf(1, { promptTokens: 7 })];
    await ledger.record(node, [lost, got]);
    for (let times = 0; times < 3; times++) {
      await ledger.declareVoid([{ node, ...lost }]);
      await ledger.record(node, [voidOf(lost)]);
    }
    expect(await sums()).toEqual(everySumOf([got]));
  });

  test("and leaves a broken record as it is", async () => {
    await using ledger = await openLedger();
    const broken = recordOf(1, { outcome: "broken", promptTokens: 0, completionTokens: 0 });
    await ledger.record(node, [broken]);
    await ledger.declareVoid([{ node, ...broken }]);
    expect(await sums()).toEqual(everySumOf([]));
    expect((await database.pool.query("select outcome from usage_records")).rows).toEqual([{ outcome: "broken" }]);
  });
});

test.each([[[0, 1]], [[1, 0]]])("only the second of two attempts is billed, in the order %j [A1]", async (order) => {
  await using ledger = await openLedger();
  const first = recordOf(1);
  const other = asId<NodeId>("node-2");
  const second = granted({ ...first, attempt: 2, promptTokens: 11 }, other);
  for (const n of order) await ledger.record([node, other][n]!, [[first, second][n]!]);
  expect(await sums()).toEqual(everySumOf([second]));
});

test("after any history of attempts and declarations on two routers, the sums equal the billed records [A1 A9]", async () => {
  const other = await server.openAgain(database);
  await using one = await openLedger();
  await using two = await openLedger(other);
  const random = createRandom(5);
  const news = Array.from({ length: 400 }, () => newsOf(random)).flat();
  const shuffled = news.toSorted(() => random.next() - 0.5);
  const sent: Promise<void>[] = [];
  for (let at = 0; at < shuffled.length; at += 7)
    sent.push(send(random.next() < 0.5 ? one : two, shuffled.slice(at, at + 7)));
  await Promise.all(sent);
  expect(await sums()).toEqual(everySumOf(news));
});

/** Makes the messages about one request: records, some of them twice, and declarations. */
function newsOf(random: Random): UsageRecord[] {
  const first = makeRecord(random, nowMs - random.below(3_600_000));
  const second = granted({ ...first, attempt: 2, completionTokens: random.below(100), tokensMax: 33_000 });
  const kinds: UsageRecord[][] = [
    [first],
    [first, first],
    [first, voidOf(first)],
    [voidOf(first)],
    [first, second],
    [second, second],
    [first, second, voidOf(first)],
    [first, second, voidOf(second)],
    [first, voidOf(first), voidOf(second), second],
  ];
  return random.pick(kinds);
}

async function send(ledger: UsageLedger, news: readonly UsageRecord[]): Promise<void> {
  await ledger.record(node, news);
}
