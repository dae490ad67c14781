import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { makeRecord } from "../../test/usage/usage-records.ts";
import type { NodeRecord } from "./usage-rows.ts";
import { UsageQueue } from "./usage-queue.ts";
import { from, nothing, openQueue, SimulatedDatabase } from "../../test/usage/simulated-database.ts";

const promisedMs = 1_000;
describe("every record is committed within a second after the database recovers, without any further call", () => {
  test("with two nodes and commits of 30 ms [A7]", async () => {
    const { clock, send, acknowledged } = openQueue();
    const sent: string[] = [];
    for (let n = 0; n < 50; n++) {
      sent.push(...send(1, `node-${n % 2}`));
      await clock.advanceAsync(7);
    }
    await clock.advanceAsync(promisedMs);
    expect([...acknowledged].toSorted()).toEqual(sent.toSorted());
  });

  test("after the database was stalled [A7]", async () => {
    const { database, clock, send, acknowledged } = openQueue();
    database.beUnwell(15_000, 15_000, false);
    send();
    await clock.advanceAsync(1_000);
    send();
    await database.recovery();
    await clock.advanceAsync(promisedMs);
    expect(acknowledged.size).toBe(2);
  });

  test("after the database was unreachable [A7]", async () => {
    const { database, clock, send, acknowledged, failures } = openQueue();
    database.beUnwell(60_000, 0, true);
    send(700);
    await database.recovery();
    expect(acknowledged.size).toBe(0);
    expect(failures.filter((isNews) => isNews)).toEqual([true]);
    await clock.advanceAsync(promisedMs);
    expect(acknowledged.size).toBe(700);
  });

  test("after any order of records and outages [A7]", async () => {
    const step = fc.record({
      afterMs: fc.integer({ min: 0, max: 200 }),
      records: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constantFrom(499, 500, 501, 1_000)),
      node: fc.constantFrom("node-1", "node-2"),
      unwellMs: fc.constantFrom(0, 0, 0, 50, 1_000, 20_000),
      commitMs: fc.constantFrom(0, 19, 20, 21, 100, 5_000),
      fails: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 15 }), async (steps) => {
        const { database, clock, send, acknowledged } = openQueue();
        let sent = 0;
        for (const { afterMs, records, node, unwellMs, commitMs, fails } of steps) {
          await clock.advanceAsync(afterMs);
          if (unwellMs > 0) database.beUnwell(unwellMs, commitMs, fails);
          sent += send(records, node).length;
        }
        await database.recovery();
        await clock.advanceAsync(promisedMs);
        await clock.advanceAsync(database.commitMs * Math.ceil(sent / 500)); // more than one batch takes as many commits
        expect(acknowledged.size).toBe(sent);
        expect(clock.pending).toBe(0);
      }),
      { numRuns: 40 },
    );
  });
});

describe("a record that the database refuses", () => {
  const bad = (database: SimulatedDatabase, ...records: readonly UsageRecord[]) => {
    const ids = new Set<string>(records.map(({ requestId }) => requestId));
    database.refuses = ({ record, setAside }) => ids.has(record.requestId) && !setAside;
  };

  test("is set aside with its reason, then acknowledged, and delays no other record [A7]", async () => {
    const { database, clock, queue, refused } = openQueue();
    const random = createRandom(5);
    const records = Array.from({ length: 1_000 }, () => makeRecord(random, clock.now()));
    bad(database, records[3]!, records[4]!, records[999]!);
    const all = queue.add(from("node-1", records));
    await clock.advanceAsync(promisedMs + 3 * 2 * 9 * database.commitMs); // isolating a record costs two commits per halving
    await all;
    expect(database.committed.size).toBe(997);
    const stored = database.setAside.map(({ record, setAside }) => [record.requestId, setAside]);
    const why = { reason: "database", detail: "bigint out of range" };
    expect(stored).toEqual([3, 4, 999].map((n) => [records[n]!.requestId, why]));
    expect(refused.reduce((sum, [, , count]) => sum + count, 0)).toBe(3);
  });

  test("is not acknowledged before it is set aside, even if it is sent repeatedly during outages", async () => {
    const { database, clock, queue } = openQueue();
    const record = makeRecord(createRandom(5), clock.now());
    bad(database, record);
    let acknowledged = 0;
    const send = () => void queue.add(from("node-1", [record])).then(() => acknowledged++);
    send();
    await clock.advanceAsync(20 + database.commitMs);
    database.beUnwell(20_000, 0, true);
    send();
    await clock.advanceAsync(10_000);
    send();
    expect([acknowledged, database.setAside.length]).toEqual([0, 0]);
    await database.recovery();
    await clock.advanceAsync(promisedMs);
    expect(acknowledged).toBe(3);
    expect(new Set(database.setAside.map((one) => one.record.requestId))).toEqual(new Set([record.requestId]));
    expect(clock.pending).toBe(0);
  });

  test("is given up if it cannot be set aside either", async () => {
    const { database, clock, queue } = openQueue();
    database.refuses = () => true;
    const added = queue.add(from("node-1", [makeRecord(createRandom(5), clock.now())]));
    await clock.advanceAsync(promisedMs);
    await added;
    expect(clock.pending).toBe(0);
  });
});

describe("a batch that is sent again before it is committed", () => {
  test("waits for the same commit and counts as repeated", async () => {
    const { database, clock, queue, told } = openQueue();
    database.beUnwell(60_000, 0, true);
    const records = Array.from({ length: 1_000 }, () => makeRecord(createRandom(2), clock.now()));
    let acknowledged = 0;
    for (let n = 0; n < 100; n++) void queue.add(from("node-1", records)).then(() => acknowledged++);
    await database.recovery();
    await clock.advanceAsync(promisedMs);
    expect(acknowledged).toBe(100);
    expect(told.reduce((sum, batch) => sum + batch.records, 0)).toBe(100_000);
    expect(told.reduce((sum, batch) => sum + batch.repeated, 0)).toBe(99_000);
  });

  test("by another node is another record, which the database recognizes", async () => {
    const { database, clock, queue } = openQueue();
    const [record] = [makeRecord(createRandom(2), clock.now())];
    let acknowledged = 0;
    for (const node of ["node-1", "node-2"]) void queue.add(from(node, [record])).then(() => acknowledged++);
    await clock.advanceAsync(promisedMs);
    expect([acknowledged, database.committed.size]).toEqual([2, 1]);
  });
});

test("a void is committed even while its record waits and the queue is full", async () => {
  const { database, clock, queue } = openQueue();
  database.beUnwell(60_000, 0, true);
  const random = createRandom(6);
  const records = Array.from({ length: 50_000 }, () => makeRecord(random, clock.now()));
  const committed: string[] = [];
  database.onCommitted = ({ record }) =>
    record.requestId === records[49_999]!.requestId && committed.push(record.outcome);
  const all = [
    queue.add(from("node-1", records)),
    queue.add(from("node-1", [{ ...records[49_999]!, outcome: "void" }])),
  ];
  await database.recovery();
  await clock.advanceAsync(10_000);
  await Promise.all(all);
  expect(committed).toEqual(["finished", "void"]);
});

test("a full queue refuses new records and still accepts repetitions of waiting ones", async () => {
  const { database, clock, queue } = openQueue();
  database.beUnwell(60_000, 0, true);
  const random = createRandom(3);
  const batches = Array.from({ length: 51 }, () =>
    Array.from({ length: 1_000 }, () => makeRecord(random, clock.now())),
  );
  const taken = batches.slice(0, 50).map((batch) => queue.add(from("node-1", batch)));
  await expect(queue.add(from("node-1", batches[50]!))).rejects.toThrow("50000 usage records wait");
  taken.push(queue.add(from("node-1", batches[0]!)));
  await database.recovery();
  await clock.advanceAsync(10_000);
  await Promise.all(taken);
  expect(database.committed.size).toBe(50_000);
  queue.add(from("node-1", batches[50]!)).catch(() => {});
  await clock.advanceAsync(promisedMs);
  expect(database.committed.size).toBe(51_000);
});

test("a batch that exceeds the database's timeout is split into smaller ones", async () => {
  const clock = new VirtualClock();
  const sizes: number[] = [];
  const events = { usageCommitted() {}, usageCommitFailed() {}, usageSetAside() {} };
  const commit = async (batch: readonly NodeRecord[]) => {
    sizes.push(batch.length);
    if (batch.length > 100)
      throw Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" });
    return { ...nothing, inserted: batch.length };
  };
  const queue = new UsageQueue(commit, clock, events);
  const records = Array.from({ length: 500 }, () => makeRecord(createRandom(4), clock.now()));
  let acknowledged = false;
  void queue.add(from("node-1", records)).then(() => (acknowledged = true));
  await clock.advanceAsync(10_000);
  expect(acknowledged).toBe(true);
  expect(sizes.slice(0, 5)).toEqual([500, 250, 125, 62, 124]);
});

describe("closing", () => {
  test("commits all waiting records at once", async () => {
    const { database, clock, queue, send, acknowledged } = openQueue();
    send(1_200);
    void queue[Symbol.asyncDispose]();
    await clock.advanceAsync(3 * database.commitMs);
    expect(acknowledged.size).toBe(1_200);
    expect(clock.pending).toBe(0);
    await expect(queue.add(from("node-1", [makeRecord(createRandom(1), clock.now())]))).rejects.toThrow("closed");
  });

  test("tries once more without a database and then rejects", async () => {
    const { database, clock, queue } = openQueue();
    database.beUnwell(60_000, 100, true);
    const added = queue.add(from("node-1", [makeRecord(createRandom(1), clock.now())]));
    added.catch(() => {}); // awaited below
    await clock.advanceAsync(50);
    void queue[Symbol.asyncDispose]();
    await clock.advanceAsync(200);
    await expect(added).rejects.toThrow("no database");
    expect(clock.pending).toBe(0);
  });
});
