import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import type { UsageQueueEvents } from "../../src/usage/usage-queue.ts";
import type { Database } from "../../src/db/database.ts";
import { testDatabases, until } from "../db/database-fixture.ts";
import { everySum, nowMs, openLedgerOn, recorder, records, subscribe } from "./ledger-steps.ts";
import { granted, grantedNode, grants, idOf, makeRecord, sumOf, sumsOf } from "./usage-records.ts";

const node = grantedNode;
const dayMs = 86_400_000;
const at = (text: string) => Date.parse(text);
let database: Database;
const server = await forThisFile(testDatabases());
beforeEach(async () => {
  database = await server.newDatabase();
});
const openLedger = (of = database, events?: UsageQueueEvents) => openLedgerOn(of, events);

async function totalsByPeriod(account: number): Promise<[string, bigint][]> {
  const { rows } = await database.pool.query<{ period: string; requests: bigint }>(
    "select period_start::text as period, requests from usage_totals where account_id = $1 and scope = 'account' order by 1",
    [idOf("a", account)],
  );
  return rows.map(({ period, requests }) => [period, requests]);
}

describe("usage is billed exactly once", () => {
  test("records and all their sums change together", async () => {
    await using ledger = await openLedger();
    const all = records(2_500);
    await Promise.all([ledger.record(node, all.slice(0, 700)), ledger.record(node, all.slice(700))]);
    expect(await sumsOf(database)).toEqual(everySum(all));
  });

  test("a batch that is sent a hundred times at once counts once [A1 S20.4]", async () => {
    const events = recorder();
    await using ledger = await openLedger(database, events);
    const batch = records(50);
    await Promise.all(Array.from({ length: 100 }, () => ledger.record(node, batch)));
    expect(await sumsOf(database)).toEqual(everySum(batch));
    expect(events.committed.reduce((sum, { repeated }) => sum + repeated, 0)).toBe(99 * 50);
  });

  test("a commit reports the credits of its new records by model, and none for repeated ones", async () => {
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

  test("an attempt that is sent again with another account counts once", async () => {
    await using ledger = await openLedger();
    const [first] = records(1);
    await ledger.record(node, [first!]);
    await ledger.record(node, [granted({ ...first!, accountId: idOf("a", 9) })]);
    expect(await sumsOf(database)).toEqual(everySum([first!]));
  });

  test("the sums of two routers that bill the same accounts at once are exact", async () => {
    const other = await server.openAgain(database);
    await using first = await openLedger();
    await using second = await openLedger(other);
    const all = records(4_000, 7);
    const random = createRandom(8);
    const batches = Array.from({ length: 60 }, () => Array.from({ length: 200 }, () => random.pick(all)));
    await Promise.all(batches.map((batch, n) => (n % 2 === 0 ? first : second).record(node, batch)));
    expect(await sumsOf(database)).toEqual(everySum(batches.flat()));
  });

  test("a batch that is sent again because a router died between commit and acknowledgement counts once [A1]", async () => {
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

  test("a batch that the database refuses for a time is committed and acknowledged later, without being sent again", async () => {
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

  test("a batch that is not committed before the ledger closes is not acknowledged", async () => {
    const ledger = await openLedger();
    await database.pool.query("drop table usage_totals");
    const recorded = ledger.record(node, records(3));
    recorded.catch(() => {}); // awaited below
    await ledger[Symbol.asyncDispose]();
    await expect(recorded).rejects.toThrow("usage_totals");
    expect((await database.pool.query("select count(*) from usage_records")).rows).toEqual([{ count: 0n }]);
  });
});

describe("usage belongs to the billing period in which its request was accepted", () => {
  test("even if its record arrives in a later period [S20.4]", async () => {
    await subscribe(database, 0, "2026-10-14T08:00:00Z");
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

  test("and a replaced package ends its period at once", async () => {
    await subscribe(database, 0, "2026-11-01T08:00:00Z", "2026-11-15T09:00:00.5Z");
    await subscribe(database, 0, "2026-11-15T09:00:00.5Z");
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

  test("but to no period without a package; it counts on its German day", async () => {
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

test("an invalid usage record is acknowledged and set aside", async () => {
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

describe("the time of a key's last use", () => {
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

  test("comes from its records, is written at most once a minute, and never decreases", async () => {
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
