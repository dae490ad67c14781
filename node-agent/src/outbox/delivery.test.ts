import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { sleep } from "@weiche/shared/time/clock.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { SimulatedDisk } from "../../test/outbox/simulated-disk.ts";
import { numberOf, usageRecord } from "../../test/outbox/usage-records.ts";
import { UsageDelivery, type DeliveryEvents } from "./delivery.ts";
import { openOutbox, outboxLimits, type Outbox } from "./outbox.ts";
import { encodeFrame, encodeHeader, segmentName } from "./segment.ts";
import type { UsageChannel } from "./usage-channel.ts";

const events = {
  outboxCursorUnreadable() {},
  outboxDamaged() {},
  outboxTornTail() {},
  outboxFull() {},
  outboxRoomAgain() {},
  outboxUnknownVersion() {},
};

/** The database of all routers: each record once, however often it is delivered. */
class Database {
  readonly committed = new Set<number>();
  readonly arrivals: number[] = [];
}

/** A router at the other end of a link. `answer` decides about each batch; by default it is committed at once. */
class SimulatedRouter implements UsageChannel {
  readonly routerId: string;
  isLeaving = false;
  readonly batches: { readonly batchId: bigint; readonly numbers: readonly number[]; readonly atMs: number }[] = [];
  readonly #database: Database;
  readonly #clock: VirtualClock;
  answer: (commit: () => void, batchId: bigint) => void = (commit, batchId) => {
    commit();
    delivery.acknowledged(this.routerId, batchId);
  };

  constructor(routerId: string, database: Database, clock: VirtualClock) {
    this.routerId = routerId;
    this.#database = database;
    this.#clock = clock;
  }

  send(batchId: bigint, records: readonly UsageRecord[]): void {
    const numbers = records.map(numberOf);
    this.batches.push({ batchId, numbers, atMs: this.#clock.now() });
    this.#clock.after(5, () =>
      this.answer(() => {
        this.#database.arrivals.push(...numbers);
        for (const number of numbers) this.#database.committed.add(number);
      }, batchId),
    );
  }
}

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
  outbox = await openOutbox(disk, clock, events, { ...outboxLimits, segmentBytesMax: 20_000, reserveBytes: 4_096 });
  heard = [];
  delivery = new UsageDelivery(outbox, clock, deliveryEvents);
  database = new Database();
  a = new SimulatedRouter("a", database, clock);
  b = new SimulatedRouter("b", database, clock);
});

afterEach(async () => {
  delivery[Symbol.dispose]();
  await outbox[Symbol.asyncDispose]();
});

async function append(from: number, below: number): Promise<void> {
  await Promise.all(range(from, below).map((number) => outbox.append(usageRecord(number))));
}

function range(from: number, below: number): number[] {
  return Array.from({ length: below - from }, (_, index) => from + index);
}

describe("with one router", () => {
  it("sends what comes while records that it cannot read are passed over", async () => {
    const frames = range(0, 10).map(() => encodeFrame(Buffer.from(JSON.stringify([99]))));
    disk.put(segmentName(1), Buffer.concat([encodeHeader(1), ...frames]));
    await outbox[Symbol.asyncDispose]();
    await using box = await openOutbox(disk, clock, events, { ...outboxLimits, reserveBytes: 4_096 });
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

  it("sends what ends close together as one batch, soon, and in order", async () => {
    delivery.linkUp(a);
    await clock.advanceAsync(300);
    const startMs = clock.now();
    await append(0, 30);
    await clock.advanceAsync(300);
    expect(a.batches).toEqual([{ batchId: 1n, numbers: range(0, 30), atMs: startMs + 200 }]);
    expect(outbox.depth).toBe(0);
    expect(heard).toEqual(["delivered 30"]);
  });

  it("sends at most 1,000 records at once, one batch after the other", async () => {
    await append(0, 2_500);
    delivery.linkUp(a);
    await clock.advanceAsync(300);
    expect(a.batches.map(({ numbers }) => numbers.length)).toEqual([1_000, 1_000, 500]);
    expect(database.arrivals).toEqual(range(0, 2_500));
    expect(outbox.depth).toBe(0);
  });

  it("sends nothing again that was acknowledged, and nothing while it waits", async () => {
    a.answer = () => {};
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

  it("sends again after 10 s of silence; a late acknowledgement of either sending counts, a second one does not", async () => {
    a.answer = () => {};
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
    /** Whether the flush has ended after this time. */
    async function isFlushedAfter(ms: number): Promise<boolean> {
      let isFlushed = false;
      void delivery.flush(2_000).then(() => (isFlushed = true));
      await clock.advanceAsync(ms);
      return isFlushed;
    }

    it("sends what is left at once, batch after batch, and waits until all is committed", async () => {
      delivery.linkUp(a);
      await clock.advanceAsync(300);
      await append(0, 1_500);
      expect(await isFlushedAfter(20)).toBe(true);
      expect(database.arrivals).toEqual(range(0, 1_500));
      expect([outbox.depth, clock.pending]).toEqual([0, 1]); // its tick
    });

    it("waits for nobody when nothing is left or no router is there", async () => {
      expect(await isFlushedAfter(0)).toBe(true);
      await append(0, 5);
      expect(await isFlushedAfter(0)).toBe(true);
    });

    it("waits no longer for a router that goes, and for one that is silent until its time is over", async () => {
      a.answer = () => {};
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

  it("does not believe an acknowledgement of what was not sent there", async () => {
    a.answer = () => {};
    delivery.linkUp(a);
    await append(0, 5);
    await clock.advanceAsync(300);
    delivery.acknowledged("a", 7n);
    delivery.acknowledged("b", 1n);
    delivery.acknowledged("a", 0n);
    expect(outbox.depth).toBe(5);
    delivery.acknowledged("a", 1n);
    expect(outbox.depth).toBe(0);
  });

  it("sends what a link took with it again when a link is there", async () => {
    a.answer = () => {};
    delivery.linkUp(a);
    await append(0, 5);
    await clock.advanceAsync(300);
    delivery.linkDown("a");
    await clock.advanceAsync(60_000);
    expect(a.batches).toHaveLength(1);
    a.answer = (commit, batchId) => {
      commit();
      delivery.acknowledged("a", batchId);
    };
    delivery.linkUp(a);
    await clock.advanceAsync(300);
    expect(database.arrivals).toEqual(range(0, 5));
  });

  it("sends to a router that stops only as long as there is no other", async () => {
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

  it("understands acknowledgements that follow the end of a link", async () => {
    a.answer = () => {};
    delivery.linkUp(a);
    await append(0, 5);
    await clock.advanceAsync(300);
    delivery.linkDown("a");
    delivery.acknowledged("a", 1n);
    expect(outbox.depth).toBe(0);
  });

  it("sends again what is held when the database is another one, even if more is on its way", async () => {
    delivery.linkUp(a);
    delivery.committedTo("first");
    await append(0, 300);
    await clock.advanceAsync(300);
    expect(outbox.depth).toBe(0);
    database.committed.clear(); // a failover lost the last commits
    a.answer = () => {};
    await append(300, 310);
    await clock.advanceAsync(210);
    delivery.committedTo("second");
    a.answer = (commit, batchId) => {
      commit();
      delivery.acknowledged("a", batchId);
    };
    delivery.acknowledged("a", a.batches.at(-1)!.batchId); // of an earlier sending
    await clock.advanceAsync(300);
    expect([...database.committed].toSorted((x, y) => x - y)).toEqual(range(0, 310));
    expect(outbox.depth).toBe(0);
  });

  it("forgets what it was just reading when it is asked to begin earlier", async () => {
    delivery.linkUp(a);
    delivery.committedTo("first");
    await append(0, 5);
    await clock.advanceAsync(300);
    await append(5, 8);
    clock.advance(200); // the read has begun; the new database is known before the disk answers
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
  a.answer = () => {};
  delivery.linkUp(a);
  await append(0, 5);
  await clock.advanceAsync(300);
  await append(5, 10);
  delivery[Symbol.dispose]();
  await outbox[Symbol.asyncDispose]();
  expect(clock.pending).toBe(0);
});

describe("with two routers", () => {
  it("uses one at a time, and the other when that one is silent or gone", async () => {
    a.answer = () => {};
    delivery.linkUp(a);
    delivery.linkUp(b);
    await append(0, 5);
    await clock.advanceAsync(9_000);
    expect([a.batches.length, b.batches.length]).toEqual([1, 0]);
    await clock.advanceAsync(2_000);
    expect(b.batches.map(({ numbers }) => numbers)).toEqual([range(0, 5)]);
    expect(outbox.depth).toBe(0);
    b.answer = () => {};
    await append(5, 8);
    await clock.advanceAsync(300);
    a.answer = (commit, batchId) => {
      commit();
      delivery.acknowledged("a", batchId);
    };
    delivery.linkDown("b");
    await clock.advanceAsync(300);
    expect(a.batches.at(-1)!.numbers).toEqual(range(5, 8));
    expect(outbox.depth).toBe(0);
  });

  it("delivers every record at least once, and drops none, whatever links and routers do", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = createRandom(seed);
      const run = await simulation(random.below(2 ** 31));
      expect(run.missing).toEqual([]);
      expect(run.depth).toBe(0);
    }
  });

  /** Two routers that commit or not, acknowledge late, twice or never, with links that come and go. */
  async function simulation(seed: number): Promise<{ missing: number[]; depth: number }> {
    const random = createRandom(seed);
    const time = new VirtualClock();
    const box = await openOutbox(new SimulatedDisk(), time, events, {
      ...outboxLimits,
      segmentBytesMax: 2_000,
      reserveBytes: 4_096,
    });
    const sender = new UsageDelivery(box, time, {
      usageDelivered() {},
      usageNotAcknowledged() {},
      usageSentAgain() {},
      usageUnreadable() {},
    });
    const store = new Database();
    let well = false;
    const routers = ["a", "b"].map((routerId) => {
      const router = new SimulatedRouter(routerId, store, time);
      router.answer = (commit, batchId) => {
        if (!well && random.chance(0.3)) return;
        commit();
        for (let times = well ? 1 : random.below(3); times > 0; times--)
          time.after(well ? 1 : random.below(25_000), () => sender.acknowledged(routerId, batchId));
      };
      return router;
    });
    const up = new Set<SimulatedRouter>();
    const toggle = (router: SimulatedRouter, on: boolean) => {
      if (on === up.has(router)) return;
      if (on) sender.linkUp(router);
      else sender.linkDown(router.routerId);
      if (on) up.add(router);
      else up.delete(router);
    };
    let count = 0;
    for (let step = 0; step < 60; step++) {
      for (let records = random.below(30); records > 0; records--) void box.append(usageRecord(count++));
      for (const router of routers) if (random.chance(0.3)) toggle(router, random.chance(0.6));
      if (random.chance(0.03)) sender.committedTo(`after step ${step}`);
      await time.advanceAsync(random.below(4_000));
    }
    well = true;
    for (const router of routers) toggle(router, true);
    await time.advanceAsync(60_000);
    const missing = range(0, count).filter((number) => !store.committed.has(number));
    const { depth } = box;
    sender[Symbol.dispose]();
    await box[Symbol.asyncDispose]();
    return { missing, depth };
  }
});
