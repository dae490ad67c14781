import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import type { CommittedBatch, UsageQueueEvents } from "../../src/usage/usage-queue.ts";
import { rollUsageDays } from "../../src/usage/usage-days.ts";
import { readUsageTable } from "../../src/usage/usage-table.ts";
import type { Database } from "../../src/db/database.ts";
import { startDatabaseServer, until, type DatabaseServer } from "../db/database-fixture.ts";
import { granted, grantedNode, grants, idOf, makeRecord, sumOf, sumsOf } from "./usage-records.ts";

const node = grantedNode;
const dayMs = 86_400_000;
const nowMs = Date.parse("2026-11-21T12:00:00Z");
const at = (text: string) => Date.parse(text);
let server: DatabaseServer;
let database: Database;
beforeAll(async () => {
  server = await startDatabaseServer();
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  database = await server.newDatabase();
});

interface Recorded extends UsageQueueEvents {
  readonly committed: CommittedBatch[];
  readonly refused: string[];
  readonly failed: unknown[];
}

function recorder(): Recorded {
  const committed: Recorded["committed"] = [];
  const refused: string[] = [];
  const failed: unknown[] = [];
  return {
    committed,
    refused,
    failed,
    usageCommitted: (batch) => void committed.push(batch),
    usageCommitFailed: (error) => void failed.push(error),
    usageSetAside: (_node, reason, count) => void refused.push(...Array.from({ length: count }, () => reason)),
  };
}

/** Real timers at a fixed date. */
const clock = { ...systemClock, now: () => nowMs };

async function openLedger(of = database, events: UsageQueueEvents = recorder()) {
  return createUsageLedger(of, clock, events, { grants });
}

function records(count: number, seed = 1, more: (n: number) => Partial<UsageRecord> = () => ({})): UsageRecord[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, n) => makeRecord(random, nowMs - random.below(3_600_000), more(n)));
}

/** Every way of summing up gives what the records are worth. */
function everySum(expected: readonly UsageRecord[]): Awaited<ReturnType<typeof sumsOf>> {
  const sum = sumOf(expected);
  return { records: sum, account: sum, user: sum, key: sum, model: sum, days: sum };
}

async function subscribe(account: number, startedAt: string, endedAt: string | null = null): Promise<void> {
  const id = idOf("a", account);
  await database.pool.query("insert into accounts values ($1, $2, null, now()) on conflict do nothing", [
    id,
    `account ${account}`,
  ]);
  await database.pool.query("insert into subscriptions values ($1, 'Pro', 'active', $2, $3)", [id, startedAt, endedAt]);
}

async function totalsByPeriod(account: number): Promise<[string, bigint][]> {
  const { rows } = await database.pool.query<{ period: string; requests: bigint }>(
    "select period_start::text as period, requests from usage_totals where account_id = $1 and scope = 'account' order by 1",
    [idOf("a", account)],
  );
  return rows.map(({ period, requests }) => [period, requests]);
}

describe("billed exactly once", () => {
  test("records and all their sums move together", async () => {
    await using ledger = await openLedger();
    const all = records(2_500);
    await Promise.all([ledger.record(node, all.slice(0, 700)), ledger.record(node, all.slice(700))]);
    expect(await sumsOf(database)).toEqual(everySum(all));
  });

  test("the same batch a hundred times at once counts once", async () => {
    const events = recorder();
    await using ledger = await openLedger(database, events);
    const batch = records(50);
    await Promise.all(Array.from({ length: 100 }, () => ledger.record(node, batch)));
    expect(await sumsOf(database)).toEqual(everySum(batch));
    expect(events.committed.reduce((sum, { repeated }) => sum + repeated, 0)).toBe(99 * 50);
  });

  test("a commit tells the credits of its new records by model, and none of repeated ones", async () => {
    const events = recorder();
    await using ledger = await openLedger(database, events);
    const all = records(300, 3);
    await ledger.record(node, all);
    await ledger.record(node, all);
    const told = new Map<string, bigint>();
    for (const { credits } of events.committed)
      for (const [model, sum] of credits) told.set(model, (told.get(model) ?? 0n) + sum);
    const billed = Map.groupBy(all, ({ model }) => model);
    expect(billed.size).toBeGreaterThan(1);
    expect(told).toEqual(new Map([...billed].map(([model, ofModel]) => [model, sumOf(ofModel).credits])));
  });

  test("an attempt that comes again under another account counts once", async () => {
    await using ledger = await openLedger();
    const [first] = records(1);
    await ledger.record(node, [first!]);
    await ledger.record(node, [granted({ ...first!, accountId: idOf("a", 9) })]);
    expect(await sumsOf(database)).toEqual(everySum([first!]));
  });

  test("two routers with the same accounts at once sum up exactly", async () => {
    const other = await server.openAgain(database);
    await using first = await openLedger();
    await using second = await openLedger(other);
    const all = records(4_000, 7);
    const random = createRandom(8);
    const batches = Array.from({ length: 60 }, () => Array.from({ length: 200 }, () => random.pick(all)));
    await Promise.all(batches.map((batch, n) => (n % 2 === 0 ? first : second).record(node, batch)));
    expect(await sumsOf(database)).toEqual(everySum(batches.flat()));
  });

  test("a router that is killed between commit and acknowledgement is sent the batch again: it counts once", async () => {
    const batch = records(20).map((record) =>
      granted({ ...record, requestId: makeRecord(createRandom(1), Date.now()).requestId }),
    );
    const script = join(import.meta.dirname, "record-and-die.ts");
    const child = spawn(process.execPath, [script, database.connection.connectionString!], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    child.stdin.end(
      JSON.stringify(batch, (_key, value: unknown) => (typeof value === "bigint" ? value.toString() : value)),
    );
    const [said, [, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    expect([said, signal]).toEqual(["", "SIGKILL"]);
    expect(await sumsOf(database)).toEqual(everySum(batch));

    await using ledger = await createUsageLedger(database, systemClock, recorder(), { grants });
    await ledger.record(node, batch);
    expect(await sumsOf(database)).toEqual(everySum(batch));
  });

  test.each([[[0, 1]], [[1, 0]]])(
    "a record of zero never displaces another attempt, in the order %j",
    async (order) => {
      await using ledger = await openLedger();
      const [whole] = records(1, 3, () => ({ attempt: 2 }));
      const zero = granted({ ...whole!, attempt: 1, outcome: "broken", promptTokens: 0, completionTokens: 0 });
      for (const n of order) await ledger.record(node, [[zero, whole!][n]!]);
      expect(await sumsOf(database)).toEqual(everySum([zero, whole!]));
    },
  );

  test("a batch that the database cannot take is acknowledged when it can, without coming again", async () => {
    const events = recorder();
    await using ledger = await openLedger(database, events);
    await database.pool.query("alter table usage_totals rename to away");
    const all = records(3);
    const recorded = ledger.record(node, all);
    await until("two attempts have failed", 20_000, () => events.failed.length > 1);
    expect(String(events.failed[0])).toContain("usage_totals");
    expect((await database.pool.query("select count(*) from usage_records")).rows).toEqual([{ count: 0n }]);
    await database.pool.query("alter table away rename to usage_totals");
    await recorded;
    expect(await sumsOf(database)).toEqual(everySum(all));
  });

  test("a batch that the database does not take until the ledger closes is not acknowledged", async () => {
    const ledger = await openLedger();
    await database.pool.query("drop table usage_totals");
    const recorded = ledger.record(node, records(3));
    recorded.catch(() => {}); // looked at below
    await ledger[Symbol.asyncDispose]();
    await expect(recorded).rejects.toThrow("usage_totals");
    expect((await database.pool.query("select count(*) from usage_records")).rows).toEqual([{ count: 0n }]);
  });
});

describe("in the billing period of its acceptance", () => {
  test("a record that comes late belongs to the period before", async () => {
    await subscribe(0, "2026-10-14T08:00:00Z");
    await using ledger = await openLedger();
    const accepted = [
      "2026-10-14T08:00:00Z",
      "2026-11-13T22:59:59.999Z",
      "2026-11-13T23:00:00Z",
      "2026-11-20T12:00:00Z",
    ];
    await ledger.record(
      node,
      accepted.map((text) => makeRecord(createRandom(1), at(text), { accountId: idOf("a", 0) })),
    );
    expect(await totalsByPeriod(0)).toEqual([
      ["2026-10-14 08:00:00+00", 2n],
      ["2026-11-13 23:00:00+00", 2n],
    ]);
  });

  test("a package that was replaced ends its period at once", async () => {
    await subscribe(0, "2026-11-01T08:00:00Z", "2026-11-15T09:00:00.5Z");
    await subscribe(0, "2026-11-15T09:00:00.5Z");
    await using ledger = await openLedger();
    const accepted = ["2026-11-15T09:00:00.499Z", "2026-11-15T09:00:00.5Z"];
    await ledger.record(
      node,
      accepted.map((text) => makeRecord(createRandom(1), at(text), { accountId: idOf("a", 0) })),
    );
    expect(await totalsByPeriod(0)).toEqual([
      ["2026-11-01 08:00:00+00", 1n],
      ["2026-11-15 09:00:00.5+00", 1n],
    ]);
  });

  test("without a package it belongs to none, and counts on its German day", async () => {
    await using ledger = await openLedger();
    const accepted = ["2026-11-20T22:59:59Z", "2026-11-20T23:00:00Z"];
    await ledger.record(
      node,
      accepted.map((text) => makeRecord(createRandom(1), at(text), { accountId: idOf("a", 0) })),
    );
    expect(await totalsByPeriod(0)).toEqual([["-infinity", 2n]]);
    const { rows } = await database.pool.query("select day from usage_days order by day");
    expect(rows).toEqual([{ day: "2026-11-20" }, { day: "2026-11-21" }]);
  });
});

describe("days of records", () => {
  const partitions = async () =>
    (
      await database.pool.query<{ name: string }>(
        "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'usage_records'::regclass order by 1",
      )
    ).rows.map(({ name }) => name.slice(-8));

  test("are made ahead, and when a record needs one", async () => {
    await using ledger = await openLedger();
    expect(await partitions()).toEqual(["20261121", "20261122", "20261123", "20261124"]);
    await ledger.record(node, [makeRecord(createRandom(1), nowMs - 40 * dayMs)]);
    expect(await partitions()).toEqual(["20261012", "20261121", "20261122", "20261123", "20261124"]);
  });

  test("two routers that need the same new day do not get in each other's way", async () => {
    const other = await server.openAgain(database);
    await using first = await openLedger();
    await using second = await openLedger(other);
    const all = [1, 2, 3, 4].map((n) => makeRecord(createRandom(n), nowMs - 40 * dayMs));
    await Promise.all(all.map((record, n) => (n % 2 === 0 ? first : second).record(node, [record])));
    expect(await sumsOf(database)).toEqual(everySum(all));
  });

  test("are dropped when they are older than usage is kept, sums stay", async () => {
    const all = [makeRecord(createRandom(1), nowMs)];
    await using ledger = await openLedger();
    await ledger.record(node, all);
    expect(await rollUsageDays(database.pool, nowMs + 400 * dayMs, 400)).toBe(0);
    expect(await rollUsageDays(database.pool, nowMs + 401 * dayMs, 400)).toBe(1);
    const { records: left, ...sums } = await sumsOf(database);
    expect(left.requests).toBe(0n);
    expect(sums.days).toEqual(sumOf(all));
  });

  test("a day passes without a restart", async () => {
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

test("what is no usage record is acknowledged, told and not recorded", async () => {
  const events = recorder();
  await using ledger = await openLedger(database, events);
  const [good] = records(1);
  const bad: Partial<Record<keyof UsageRecord, unknown>>[] = [
    { promptTokens: -5 },
    { promptTokens: 1.5 },
    { completionTokens: NaN },
    { completionTokens: 2 ** 31 },
    { attempt: 0 },
    { accountId: "nobody" },
    { requestId: "x" },
    { model: "a\nb" },
    { factor: -1n },
    { outcome: "guessed" },
    { outcome: "broken" },
    { source: "estimated" },
  ];
  const old = makeRecord(createRandom(1), nowMs - 401 * dayMs);
  const future = makeRecord(createRandom(1), nowMs + 367 * dayMs);
  const all = [
    ...records(bad.length, 2).map((one, n) => ({ ...one, ...bad[n] }) as UsageRecord),
    old,
    future,
    { ...good!, durationMs: 0.4, cachedTokens: NaN },
  ];
  await ledger.record(node, all);
  expect(events.refused).toEqual([...bad.map(() => "malformed"), "too-old", "from-the-future"]);
  expect(await sumsOf(database)).toEqual(everySum([good!]));
});

test("a report's rows add up to its totals, for the period and for days, by every part", async () => {
  await subscribe(1, "2026-11-01T08:00:00Z");
  await using ledger = await openLedger();
  const random = createRandom(5);
  const all = Array.from({ length: 300 }, () => makeRecord(random, nowMs - random.below(30 * dayMs)));
  await ledger.record(node, all);
  const mine = all.filter(({ accountId }) => accountId === idOf("a", 1));
  const inPeriod = mine.filter(
    ({ requestId }) => Number.parseInt(requestId.replace("-", "").slice(0, 12), 16) >= at("2026-11-01T08:00:00Z"),
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

test("every sum of a day and of a billing period is that of its records, cell by cell", async () => {
  for (const account of [0, 1]) await subscribe(account, "2026-10-14T08:00:00Z");
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

describe("the database itself", () => {
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

  test("has each attempt of a request once, whoever it is billed to, and other attempts beside it", async () => {
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

  test("knows no accounts where it keeps usage, which may move to a server of its own", async () => {
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

describe("the last use of a key", () => {
  const used = (seconds: number, key: number) =>
    granted({
      ...records(1)[0]!,
      requestId: asId<UsageRecord["requestId"]>(uuidv7({ now: () => nowMs + seconds * 1_000 })),
      keyId: idOf<UsageRecord["keyId"]>("c", key),
    });
  async function lastUses(): Promise<(string | undefined)[]> {
    const { rows } = await database.pool.query<{ at: Temporal.Instant }>(
      "select last_used_at as at from key_uses order by key_id",
    );
    return rows.map(({ at: instant }) => instant.toString().slice(11));
  }

  test("comes with its records, is written once a minute at most, and never goes back", async () => {
    await using ledger = await openLedger();
    await ledger.record(node, [used(-3_000.25, 1), used(-3_600, 1), used(-60, 2)]);
    expect(await lastUses()).toEqual(["11:09:59.75Z", "11:59:00Z"]);
    await ledger.record(node, [used(-3_000, 1), used(-1, 2)]);
    expect(await lastUses()).toEqual(["11:09:59.75Z", "11:59:00Z"]);
    await ledger.record(node, [used(-2_000, 1), used(0, 2), used(-4_000, 1)]);
    expect(await lastUses()).toEqual(["11:26:40Z", "12:00:00Z"]);
    await ledger.record(node, [used(-2_500, 1)]);
    expect(await lastUses()).toEqual(["11:26:40Z", "12:00:00Z"]);
  });
});
