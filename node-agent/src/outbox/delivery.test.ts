import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sleep } from "@weiche/shared/time/clock.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { range, recorder } from "../../test/outbox/outbox-steps.ts";
import { Database, SimulatedRouter } from "../../test/outbox/simulated-router.ts";
import { SimulatedDisk } from "../../test/outbox/simulated-disk.ts";
import { usageRecord } from "../../test/outbox/usage-records.ts";
import { UsageDelivery, type DeliveryEvents } from "./delivery.ts";
import { openOutbox, outboxLimits, type Outbox } from "./outbox.ts";
import { encodeFrame, encodeHeader, segmentName } from "./segment.ts";

let clock: VirtualClock;
let disk: SimulatedDisk;
let outbox: Outbox;
let delivery: UsageDelivery;
let database: Database;
let heard: string[];
let a: SimulatedRouter;
let b: SimulatedRouter;

const deliveryEvents: DeliveryEvents = {
  usageDelivered: (records) => heard.push(`delivered ${records}`),
  usageNotAcknowledged: (routerId) => heard.push(`silent ${routerId}`),
  usageSentAgain: (records) => heard.push(`again ${records}`),
  usageUnreadable: (code) => heard.push(`unreadable ${code}`),
};

beforeEach(async () => {
  clock = new VirtualClock();
  disk = new SimulatedDisk();
  outbox = await openOutbox(disk, clock, recorder(), { ...outboxLimits, segmentBytesMax: 20_000, reserveBytes: 4_096 });
  heard = [];
  delivery = new UsageDelivery(outbox, clock, deliveryEvents);
  database = new Database();
  a = new SimulatedRouter("a", database, clock, (...of) => delivery.acknowledged(...of));
  b = new SimulatedRouter("b", database, clock, (...of) => delivery.acknowledged(...of));
});

afterEach(async () => {
  delivery[Symbol.dispose]();
  await outbox[Symbol.asyncDispose]();
});

async function append(from: number, below: number): Promise<void> {
  await Promise.all(range(from, below).map((number) => outbox.append(usageRecord(number))));
}

/** Sends five records to a router that does not answer. */
async function sentToSilentRouter(): Promise<void> {
  a.isSilent = true;
  delivery.linkUp(a);
  await append(0, 5);
  await clock.advanceAsync(300);
}

describe("with one router", () => {
  it("sends new records while unreadable records are skipped", async () => {
    const frames = range(0, 10).map(() => encodeFrame(Buffer.from(JSON.stringify([99]))));
    disk.put(segmentName(1), Buffer.concat([encodeHeader(1), ...frames]));
    await outbox[Symbol.asyncDispose]();
    await using box = await openOutbox(disk, clock, recorder(), { ...outboxLimits, reserveBytes: 4_096 });
    using sender = new UsageDelivery(box, clock, deliveryEvents);
    a.answer = (commit, batchId) => {
      commit();
      sender.acknowledged("a", batchId);
    };
    disk.delays = (call) => (call === "read" ? sleep(clock, 1_000) : Promise.resolve());
    sender.linkUp(a);
    await clock.advanceAsync(100);
    await box.append(usageRecord(1));
    await clock.advanceAsync(10_000);
    expect(database.arrivals).toEqual([1]);
    expect(box.depth).toBe(0);
  });

  it("sends records that are close together as one batch, soon, and in order", async () => {
    delivery.linkUp(a);
    await clock.advanceAsync(300);
    const startMs = clock.now();
    await append(0, 30);
    await clock.advanceAsync(300);
    expect(a.batches).toEqual([{ batchId: 1n, numbers: range(0, 30), atMs: startMs + 200 }]);
    expect(outbox.depth).toBe(0);
    expect(heard).toEqual(["delivered 30"]);
  });

  it("sends at most 1,000 records at once, one batch after another", async () => {
    await append(0, 2_500);
    delivery.linkUp(a);
    await clock.advanceAsync(300);
    expect(a.batches.map(({ numbers }) => numbers.length)).toEqual([1_000, 1_000, 500]);
    expect(database.arrivals).toEqual(range(0, 2_500));
    expect(outbox.depth).toBe(0);
  });

  it("sends no acknowledged record again, and nothing while it waits", async () => {
    a.isSilent = true;
    delivery.linkUp(a);
    await append(0, 5);
    await clock.advanceAsync(1_000);
    await append(5, 10);
    await clock.advanceAsync(8_000);
    expect(a.batches).toHaveLength(1);
    delivery.acknowledged("a", 1n);
    await clock.advanceAsync(300);
    expect(a.batches.map(({ numbers }) => numbers)).toEqual([range(0, 5), range(5, 10)]);
  });

  it("sends again after 10 s of silence, and counts a late acknowledgement of either sending once", async () => {
    a.isSilent = true;
    delivery.linkUp(a);
    await append(0, 5);
    await clock.advanceAsync(10_300);
    expect(a.batches.map(({ batchId, numbers }) => [batchId, numbers])).toEqual([
      [1n, range(0, 5)],
      [2n, range(0, 5)],
    ]);
    delivery.acknowledged("a", 1n);
    delivery.acknowledged("a", 1n);
    delivery.acknowledged("a", 2n);
    expect(outbox.depth).toBe(0);
    await append(5, 8);
    await clock.advanceAsync(300);
    expect(a.batches.at(-1)!.numbers).toEqual(range(5, 8));
    expect(heard).toEqual(["silent a", "delivered 5"]);
  });

  describe("at the end of its agent", () => {
    /** Returns whether the flush has ended after this time. */
    async function isFlushedAfter(ms: number): Promise<boolean> {
      let isFlushed = false;
      void delivery.flush(2_000).then(() => (isFlushed = true));
      await clock.advanceAsync(ms);
      return isFlushed;
    }

    it("sends the rest at once, batch after batch, and waits until all is committed", async () => {
      delivery.linkUp(a);
      await clock.advanceAsync(300);
      await append(0, 1_500);
      expect(await isFlushedAfter(20)).toBe(true);
      expect(database.arrivals).toEqual(range(0, 1_500));
      expect([outbox.depth, clock.pending]).toEqual([0, 1]); // The outbox's own tick.
    });

    it("does not wait if nothing is left or no router is linked", async () => {
      expect(await isFlushedAfter(0)).toBe(true);
      await append(0, 5);
      expect(await isFlushedAfter(0)).toBe(true);
    });

    it("stops waiting for a router that goes, and for one that stays silent until the time limit", async () => {
      a.isSilent = true;
      delivery.linkUp(a);
      await append(0, 5);
      expect(await isFlushedAfter(1_999)).toBe(false);
      const flushed = delivery.flush(2_000);
      delivery.linkDown("a");
      await flushed;
      delivery.linkUp(a);
      expect(await isFlushedAfter(2_000)).toBe(true);
      expect(outbox.depth).toBe(5);
    });
  });

  it("ignores an acknowledgement of a batch that was not sent to that router", async () => {
    await sentToSilentRouter();
    delivery.acknowledged("a", 7n);
    delivery.acknowledged("b", 1n);
    delivery.acknowledged("a", 0n);
    expect(outbox.depth).toBe(5);
    delivery.acknowledged("a", 1n);
    expect(outbox.depth).toBe(0);
  });

  it("sends a batch again over the next link if its link was lost", async () => {
    await sentToSilentRouter();
    delivery.linkDown("a");
    await clock.advanceAsync(60_000);
    expect(a.batches).toHaveLength(1);
    a.isSilent = false;
    delivery.linkUp(a);
    await clock.advanceAsync(300);
    expect(database.arrivals).toEqual(range(0, 5));
  });

  it("sends to a stopping router only while there is no other", async () => {
    a.isLeaving = true;
    delivery.linkUp(a);
    await append(0, 5);
    await clock.advanceAsync(300);
    expect(database.arrivals).toEqual(range(0, 5));
    delivery.linkUp(b);
    await append(5, 10);
    await clock.advanceAsync(300);
    expect([a.batches, b.batches].map((batches) => batches.length)).toEqual([1, 1]);
    delivery.linkDown("b");
    await append(10, 15);
    await clock.advanceAsync(300);
    expect(database.arrivals).toEqual(range(0, 15));
    expect(a.batches).toHaveLength(2);
  });

  it("accepts acknowledgements that arrive after the end of a link", async () => {
    await sentToSilentRouter();
    delivery.linkDown("a");
    delivery.acknowledged("a", 1n);
    expect(outbox.depth).toBe(0);
  });

  it("sends all held records again when the database changes, even if more are on their way", async () => {
    delivery.linkUp(a);
    delivery.committedTo("first");
    await append(0, 300);
    await clock.advanceAsync(300);
    expect(outbox.depth).toBe(0);
    database.committed.clear(); // A failover lost the last commits.
    a.isSilent = true;
    await append(300, 310);
    await clock.advanceAsync(210);
    delivery.committedTo("second");
    a.isSilent = false;
    delivery.acknowledged("a", a.batches.at(-1)!.batchId); // Acknowledges an earlier sending.
    await clock.advanceAsync(300);
    expect([...database.committed].toSorted((x, y) => x - y)).toEqual(range(0, 310));
    expect(outbox.depth).toBe(0);
  });

  it("discards a running read when it is asked to begin earlier", async () => {
    delivery.linkUp(a);
    delivery.committedTo("first");
    await append(0, 5);
    await clock.advanceAsync(300);
    await append(5, 8);
    clock.advance(200); // The read has begun, and the new database becomes known before the disk answers.
    delivery.committedTo("second");
    await clock.advanceAsync(300);
    expect(database.arrivals).toEqual([...range(0, 5), ...range(0, 8)]);
  });

  it("tries again while records cannot be read", async () => {
    await append(0, 5);
    disk.fails = (call) => (call === "read" ? "EIO" : undefined);
    delivery.linkUp(a);
    await clock.advanceAsync(2_500);
    expect(heard).toEqual(["unreadable EIO", "unreadable EIO", "unreadable EIO"]);
    disk.fails = () => undefined;
    await clock.advanceAsync(1_000);
    expect(database.arrivals).toEqual(range(0, 5));
  });
});

it("leaves no timer behind", async () => {
  await sentToSilentRouter();
  await append(5, 10);
  delivery[Symbol.dispose]();
  await outbox[Symbol.asyncDispose]();
  expect(clock.pending).toBe(0);
});

describe("with two routers", () => {
  it("uses one at a time, and the other when that one is silent or gone", async () => {
    a.isSilent = true;
    delivery.linkUp(a);
    delivery.linkUp(b);
    await append(0, 5);
    await clock.advanceAsync(9_000);
    expect([a.batches.length, b.batches.length]).toEqual([1, 0]);
    await clock.advanceAsync(2_000);
    expect(b.batches.map(({ numbers }) => numbers)).toEqual([range(0, 5)]);
    expect(outbox.depth).toBe(0);
    b.isSilent = true;
    await append(5, 8);
    await clock.advanceAsync(300);
    a.isSilent = false;
    delivery.linkDown("b");
    await clock.advanceAsync(300);
    expect(a.batches.at(-1)!.numbers).toEqual(range(5, 8));
    expect(outbox.depth).toBe(0);
  });
});
