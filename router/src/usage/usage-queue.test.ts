import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sleep } from "@weiche/shared/time/clock.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { makeRecord } from "../../test/usage/usage-records.ts";
import type { Committed } from "./usage-commit.ts";
import type { NodeRecord } from "./usage-rows.ts";
import { UsageQueue, type QueuedRecord } from "./usage-queue.ts";

const promisedMs = 1_000;
const nothing: Committed = { inserted: 0, voided: 0, credits: new Map(), voidedCredits: new Map() };

/** A database as far as usage goes: what it has committed, how long a commit takes, and until when it is not well. */
class SimulatedDatabase {
  readonly clock = new VirtualClock();
  readonly committed = new Set<string>();
  commitMs = 30;
  /** While it is not well, a commit takes so long, and then fails or not. */
  unwell = { untilMs: -Infinity, commitMs: 0, fails: false };
  /** When the last commit that met it so has ended. */
  wellAtMs = -Infinity;
  readonly setAside: QueuedRecord[] = [];
  onCommitted: (record: NodeRecord) => unknown = () => {};
  refuses: (record: QueuedRecord) => boolean = () => false;
  #commitsNow = 0;

  readonly commit = async (batch: readonly QueuedRecord[]): Promise<Committed> => {
    if (++this.#commitsNow > 1) throw new Error("two commits at once");
    const { untilMs, commitMs, fails } = this.unwell;
    const isWell = this.clock.now() >= untilMs;
    const ms = isWell ? this.commitMs : commitMs;
    if (!isWell) this.wellAtMs = this.clock.now() + ms;
    if (ms > 0) await sleep(this.clock, ms);
    this.#commitsNow--;
    if (!isWell && fails) throw Object.assign(new Error("no database"), { code: "ECONNRESET" });
    if (batch.some(this.refuses)) throw Object.assign(new Error("bigint out of range"), { code: "22003" });
    const before = this.committed.size;
    this.setAside.push(...batch.filter(({ setAside }) => setAside));
    for (const one of batch) if (!one.setAside) this.committed.add(one.record.requestId);
    for (const one of batch) this.onCommitted(one);
    return { ...nothing, inserted: this.committed.size - before };
  };

  beUnwell(forMs: number, commitMs: number, fails: boolean): void {
    this.unwell = { untilMs: this.clock.now() + forMs, commitMs, fails };
  }

  /** Time goes on until it is well and no commit is on its way that met it unwell. */
  async recovery(): Promise<void> {
    const leftMs = () => Math.max(this.unwell.untilMs, this.wellAtMs) - this.clock.now();
    while (leftMs() > 0) await this.clock.advanceAsync(leftMs());
  }
}

function from(node: string, records: readonly UsageRecord[]): NodeRecord[] {
  return records.map((record) => ({ node: asId<NodeId>(node), record }));
}

function open(database = new SimulatedDatabase()) {
  const failures: boolean[] = [];
  const refused: [string, string, number][] = [];
  const told: { readonly records: number; readonly repeated: number }[] = [];
  const queue = new UsageQueue(database.commit, database.clock, {
    usageCommitted: (batch) => void told.push(batch),
    usageCommitFailed: (_error, isNews) => void failures.push(isNews),
    usageSetAside: (node, reason, records) => void refused.push([node, reason, records]),
  });
  const random = createRandom(1);
  const acknowledged = new Set<string>();
  return {
    ...{ database, clock: database.clock, queue, told, failures, refused, acknowledged },
    /** As a node sends it: tells when it is acknowledged, which must not be before its commit. */
    send: (count = 1, node = "node-1"): readonly string[] => {
      const records = Array.from({ length: count }, () => makeRecord(random, database.clock.now()));
      const ids = records.map(({ requestId }) => requestId);
      queue.add(from(node, records)).then(
        () => {
          expect(ids.filter((id) => !database.committed.has(id))).toEqual([]);
          for (const id of ids) acknowledged.add(id);
        },
        () => {},
      );
      return ids;
    },
  };
}

describe("every record is committed within a second of the database being well, without any further request", () => {
  test("with two nodes and commits of 30 ms", async () => {
    const { clock, send, acknowledged } = open();
    const sent: string[] = [];
    for (let n = 0; n < 50; n++) {
      sent.push(...send(1, `node-${n % 2}`));
      await clock.advanceAsync(7);
    }
    await clock.advanceAsync(promisedMs);
    expect([...acknowledged].toSorted()).toEqual(sent.toSorted());
  });

  test("after the database stood still", async () => {
    const { database, clock, send, acknowledged } = open();
    database.beUnwell(15_000, 15_000, false);
    send();
    await clock.advanceAsync(1_000);
    send();
    await database.recovery();
    await clock.advanceAsync(promisedMs);
    expect(acknowledged.size).toBe(2);
  });

  test("after the database was away", async () => {
    const { database, clock, send, acknowledged, failures } = open();
    database.beUnwell(60_000, 0, true);
    send(700);
    await database.recovery();
    expect(acknowledged.size).toBe(0);
    expect(failures.filter((isNews) => isNews)).toEqual([true]);
    await clock.advanceAsync(promisedMs);
    expect(acknowledged.size).toBe(700);
  });

  test("whatever came before, in whatever order", async () => {
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
        const { database, clock, send, acknowledged } = open();
        let sent = 0;
        for (const { afterMs, records, node, unwellMs, commitMs, fails } of steps) {
          await clock.advanceAsync(afterMs);
          if (unwellMs > 0) database.beUnwell(unwellMs, commitMs, fails);
          sent += send(records, node).length;
        }
        await database.recovery();
        await clock.advanceAsync(promisedMs);
        await clock.advanceAsync(database.commitMs * Math.ceil(sent / 500)); // a thousand at once take their time
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

  test("is set aside with the reason, acknowledged then, and holds up no other", async () => {
    const { database, clock, queue, refused } = open();
    const random = createRandom(5);
    const records = Array.from({ length: 1_000 }, () => makeRecord(random, clock.now()));
    bad(database, records[3]!, records[4]!, records[999]!);
    const all = queue.add(from("node-1", records));
    await clock.advanceAsync(promisedMs + 3 * 2 * 9 * database.commitMs); // each alone costs two commits per halving
    await all;
    expect(database.committed.size).toBe(997);
    const stored = database.setAside.map(({ record, setAside }) => [record.requestId, setAside]);
    const why = { reason: "database", detail: "bigint out of range" };
    expect(stored).toEqual([3, 4, 999].map((n) => [records[n]!.requestId, why]));
    expect(refused.reduce((sum, [, , count]) => sum + count, 0)).toBe(3);
  });

  test("is not acknowledged before it is set aside, however often it comes and the database goes", async () => {
    const { database, clock, queue } = open();
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

  test("also for setting it aside is given up", async () => {
    const { database, clock, queue } = open();
    database.refuses = () => true;
    const added = queue.add(from("node-1", [makeRecord(createRandom(5), clock.now())]));
    await clock.advanceAsync(promisedMs);
    await added;
    expect(clock.pending).toBe(0);
  });
});

describe("a batch that is sent again before it is committed", () => {
  test("waits for the same commit, and counts as repeated", async () => {
    const { database, clock, queue, told } = open();
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

  test("by another node is another record, which the database knows", async () => {
    const { database, clock, queue } = open();
    const [record] = [makeRecord(createRandom(2), clock.now())];
    let acknowledged = 0;
    for (const node of ["node-1", "node-2"]) void queue.add(from(node, [record])).then(() => acknowledged++);
    await clock.advanceAsync(promisedMs);
    expect([acknowledged, database.committed.size]).toEqual([2, 1]);
  });
});

test("that an attempt is void is committed also while its record waits, and when there is no room for records", async () => {
  const { database, clock, queue } = open();
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

test("what is too much to wait for the database is not taken, and what waits already still is", async () => {
  const { database, clock, queue } = open();
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

test("a database that is too slow for a whole batch gets smaller ones", async () => {
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

describe("at the end", () => {
  test("what waits is committed at once", async () => {
    const { database, clock, queue, send, acknowledged } = open();
    send(1_200);
    void queue[Symbol.asyncDispose]();
    await clock.advanceAsync(3 * database.commitMs);
    expect(acknowledged.size).toBe(1_200);
    expect(clock.pending).toBe(0);
    await expect(queue.add(from("node-1", [makeRecord(createRandom(1), clock.now())]))).rejects.toThrow("closed");
  });

  test("without a database it is tried once more and not acknowledged", async () => {
    const { database, clock, queue } = open();
    database.beUnwell(60_000, 100, true);
    const added = queue.add(from("node-1", [makeRecord(createRandom(1), clock.now())]));
    added.catch(() => {}); // looked at below
    await clock.advanceAsync(50);
    void queue[Symbol.asyncDispose]();
    await clock.advanceAsync(200);
    await expect(added).rejects.toThrow("no database");
    expect(clock.pending).toBe(0);
  });
});
