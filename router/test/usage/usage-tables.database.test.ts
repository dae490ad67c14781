/** The usage tables: their partitions, their sums, and their constraints. */
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import type { UsageQueueEvents } from "../../src/usage/usage-queue.ts";
import { rollUsageDays } from "../../src/usage/usage-days.ts";
import { readUsageTable } from "../../src/usage/usage-table.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases } from "../db/database-fixture.ts";
import { clock, everySum, nowMs, openLedgerOn, recorder, records, subscribe } from "./ledger-steps.ts";
import { grantedNode, grants, idOf, makeRecord, sumOf, sumsOf } from "./usage-records.ts";

const node = grantedNode;
const dayMs = 86_400_000;
let database: Database;
const server = await forThisFile(testDatabases());
beforeEach(async () => {
  database = await server.newDatabase();
});
const openLedger = (of = database, events?: UsageQueueEvents) => openLedgerOn(of, events);

describe("partitions of usage records", () => {
  const partitions = async () =>
    (
      await database.pool.query<{ name: string }>(
        "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'usage_records'::regclass order by 1",
      )
    ).rows.map(({ name }) => name.slice(-8));

  test("are made in advance, and when a record needs one", async () => {
    await using ledger = await openLedger();
    expect(await partitions()).toEqual(["20261121", "20261122", "20261123", "20261124"]);
    await ledger.record(node, [makeRecord(createRandom(1), nowMs - 40 * dayMs)]);
    expect(await partitions()).toEqual(["20261012", "20261121", "20261122", "20261123", "20261124"]);
  });

  test("can be made by two routers at the same time", async () => {
    const other = await server.openAgain(database);
    await using first = await openLedger();
    await using second = await openLedger(other);
    const all = [1, 2, 3, 4].map((n) => makeRecord(createRandom(n), nowMs - 40 * dayMs));
    await Promise.all(all.map((record, n) => (n % 2 === 0 ? first : second).record(node, [record])));
    expect(await sumsOf(database)).toEqual(everySum(all));
  });

  test("are dropped after their retention, and sums stay", async () => {
    const all = [makeRecord(createRandom(1), nowMs)];
    await using ledger = await openLedger();
    await ledger.record(node, all);
    expect(await rollUsageDays(database.pool, nowMs + 400 * dayMs, 400)).toBe(0);
    expect(await rollUsageDays(database.pool, nowMs + 401 * dayMs, 400)).toBe(1);
    const { records: left, ...sums } = await sumsOf(database);
    expect(left.requests).toBe(0n);
    expect(sums.days).toEqual(sumOf(all));
  });

  test("are made for the next day without a restart", async () => {
    const virtual = new VirtualClock(nowMs);
    await using ledger = await createUsageLedger(database, virtual, recorder(), { grants });
    for (let hour = 0; hour < 24; hour++) {
      virtual.advance(3_600_000);
      await ledger.rollDays();
    }
    expect((await partitions()).length).toBeGreaterThan(4);
    expect(await partitions()).toContain("20261125");
  });
});

test("a report's rows add up to its totals, for the period and for days, by every part", async () => {
  await subscribe(database, 1, "2026-11-01T08:00:00Z");
  await using ledger = await openLedger();
  const random = createRandom(5);
  const all = Array.from({ length: 300 }, () => makeRecord(random, nowMs - random.below(30 * dayMs)));
  await ledger.record(node, all);
  const mine = all.filter(({ accountId }) => accountId === idOf("a", 1));
  const inPeriod = mine.filter(
    ({ requestId }) =>
      Number.parseInt(requestId.replace("-", "").slice(0, 12), 16) >= Date.parse("2026-11-01T08:00:00Z"),
  );
  const account = idOf("a", 1) as UsageRecord["accountId"];
  for (const by of ["day", "model", "key", "user"] as const) {
    const period = await readUsageTable(database, clock, account, { by: [by] });
    expect(Number(sumOf(inPeriod).credits) / 1000).toBe(Number(period.totals.credits));
    expect(period).toMatchObject({
      from: "2026-11-01",
      to: "2026-11-30",
      periodStart: "2026-11-01T08:00:00Z",
      periodEnd: "2026-11-30T23:00:00Z",
    });
    const days = await readUsageTable(database, clock, account, { by: [by], from: "2026-10-01", to: "2026-12-31" });
    const { requests, tokens, credits } = sumOf(mine);
    expect(days.totals).toMatchObject({ requests: Number(requests), totalTokens: Number(tokens) });
    expect(days.totals.credits.replace(".", "")).toBe(String(credits));
    expect(days.rows.reduce((sum, row) => sum + row.totalTokens, 0)).toBe(Number(tokens));
    expect(days.rows.every((row) => row[by] !== undefined)).toBe(true);
  }
});

test("every sum of a day and of a billing period equals the sum of its records", async () => {
  for (const account of [0, 1]) await subscribe(database, account, "2026-10-14T08:00:00Z");
  await using ledger = await openLedger();
  const random = createRandom(11);
  const broken = { outcome: "broken", promptTokens: 0, completionTokens: 0 } as const;
  const all = Array.from({ length: 1_500 }, (_, n) =>
    makeRecord(random, nowMs - random.below(60 * dayMs), n % 10 === 0 ? broken : {}),
  );
  const batches = Array.from({ length: 30 }, () => Array.from({ length: 100 }, () => random.pick(all)));
  await Promise.all([all, ...batches].map((batch) => ledger.record(node, batch)));
  const counts = `count(*), sum(prompt_tokens), sum(completion_tokens), sum(credits)`;
  const columns = "requests, prompt_tokens, completion_tokens, credits";
  const scopes = "('account', ''), ('user', user_id::text), ('key', key_id::text), ('model', model)";
  for (const [table, cell, subjects] of [
    ["usage_days", "account_id, day, period_start, user_id, key_id, model", ""],
    [
      "usage_totals",
      "account_id, period_start, scope, subject",
      `cross join lateral (values ${scopes}) s (scope, subject)`,
    ],
  ] as const) {
    const kept = `select ${cell}, ${columns} from ${table}`;
    const counted = `select ${cell}, ${counts} from usage_records ${subjects} where outcome <> 'broken' group by ${cell}`;
    const { rows } = await database.pool.query(
      `((${kept}) except (${counted})) union all ((${counted}) except (${kept}))`,
    );
    expect(rows).toEqual([]);
    const cells = await database.pool.query<{ count: bigint }>(`select count(*) from ${table}`);
    expect(Number(cells.rows[0]!.count)).toBeGreaterThan(table === "usage_days" ? 500 : 20);
  }
});

describe("the database", () => {
  const counted = ["requests", "prompt_tokens", "completion_tokens", "credits"];
  const below = (table: string) => counted.map((column) => [table, `${column} = -1`, `${table}_${column}_check`]);
  const usage = "usage_records";
  test.each([
    ...below("usage_totals"),
    ...below("usage_days"),
    [usage, "prompt_tokens = -1, credits = (completion_tokens - 1) * factor", "usage_records_prompt_tokens_check"],
    [usage, "completion_tokens = -1, credits = (prompt_tokens - 1) * factor", "usage_records_completion_tokens_check"],
    [usage, "credits = credits + 1", "usage_records_check"],
    [usage, "attempt = 0", "usage_records_attempt_check"],
  ])("refuses in %s: %s", async (table, change, constraint) => {
    await using ledger = await openLedger();
    await ledger.record(node, records(1));
    await expect(database.pool.query(`update ${table} set ${change}`)).rejects.toMatchObject({ constraint });
  });

  test("stores each attempt of a request once, whoever is billed, and allows other attempts", async () => {
    await using ledger = await openLedger();
    await ledger.record(node, records(1));
    const again = (change: object) =>
      database.pool.query("insert into usage_records select (jsonb_populate_record(r, $1)).* from usage_records r", [
        change,
      ]);
    const constraint = expect.stringMatching(/^usage_records_\d{8}_pkey$/) as string;
    await expect(again({ attempt: 1 })).rejects.toMatchObject({ constraint });
    await expect(again({ account_id: idOf("a", 9) })).rejects.toMatchObject({ constraint });
    await again({ attempt: 2 });
    expect((await database.pool.query("select count(*) from usage_records")).rows).toEqual([{ count: 2n }]);
  });

  test("has no foreign keys from usage to accounts, so that usage may move to another server", async () => {
    const { rows } = await database.pool.query(
      "select conrelid::regclass::text as usage from pg_constraint where contype = 'f' and conrelid::regclass::text ~ '^(usage|key_uses)'",
    );
    expect(rows).toEqual([]);
    await using ledger = await openLedger();
    const all = records(1);
    await ledger.record(node, all);
    expect((await database.pool.query("select id from accounts")).rows).toEqual([]);
    expect(await sumsOf(database)).toEqual(everySum(all));
  });
});
