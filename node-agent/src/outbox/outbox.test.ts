import { describe, expect, it } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import { SimulatedDisk, type DiskCall } from "../../test/outbox/simulated-disk.ts";
import { numberOf, usageRecord } from "../../test/outbox/usage-records.ts";
import { openOutbox, type Outbox, type OutboxEvents, type OutboxLimits } from "./outbox.ts";
import { encodeRecord } from "./record-codec.ts";
import { encodeFrame, encodeHeader, headerBytes, segmentName } from "./segment.ts";

const limits: OutboxLimits = { segmentBytesMax: 500, reserveBytes: 4_096, freeBytesMin: 4_096, keepMs: 3_600_000 };
const oneSegment: OutboxLimits = { ...limits, segmentBytesMax: 1 << 20 };

function recorder(): OutboxEvents & { readonly heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    outboxCursorUnreadable: (file) => heard.push(`unreadable ${file}`),
    outboxDamaged: (bytes) => heard.push(`damaged ${bytes}`),
    outboxTornTail: (bytes) => heard.push(`torn ${bytes}`),
    outboxFull: (code) => heard.push(`full ${code}`),
    outboxRoomAgain: () => heard.push("room"),
    outboxUnknownVersion: (records) => heard.push(`unknown ${records}`),
  };
}

async function append(outbox: Outbox, ...numbers: number[]): Promise<void> {
  for (const number of numbers) await outbox.append(usageRecord(number));
}

/** Numbers of the unacknowledged records. */
async function waiting(outbox: Outbox): Promise<number[]> {
  return (await outbox.read(1_000_000)).records.map(({ record }) => numberOf(record));
}

async function reopened(disk: SimulatedDisk, events = recorder(), clock = new VirtualClock()): Promise<Outbox> {
  return openOutbox(disk, clock, events, limits);
}

function range(from: number, below: number): number[] {
  return Array.from({ length: below - from }, (_, index) => from + index);
}

describe("the outbox", () => {
  it("passes over what a newer version wrote, and nothing else, in whatever portions it is read", async () => {
    const own = (number: number) => encodeFrame(encodeRecord({ record: usageRecord(number), writtenAtMs: 0 }));
    const foreign = encodeFrame(Buffer.from(JSON.stringify([99])));
    const disk = new SimulatedDisk();
    disk.put(segmentName(1), Buffer.concat([encodeHeader(1), foreign, ...range(0, 10).map(own)]));
    disk.put(segmentName(2), Buffer.concat([encodeHeader(2), foreign, foreign, ...range(10, 20).map(own)]));
    for (const portion of [1, 2, 5, 1_000]) {
      const outbox = await reopened(disk.afterKill());
      const numbers: number[] = [];
      for (let reads = 0; outbox.depth > 0 && reads < 100; reads++) {
        const { records, end } = await outbox.read(portion);
        numbers.push(...records.map(({ record }) => numberOf(record)));
        outbox.acknowledge(end);
      }
      expect(numbers).toEqual(range(0, 20));
    }
  });

  it("keeps records in order, over segments and restarts, until they are acknowledged", async () => {
    const disk = new SimulatedDisk();
    const first = await reopened(disk);
    await append(first, ...range(0, 20));
    expect(disk.list().filter((name) => name.endsWith(".usage")).length).toBeGreaterThan(3);
    first.acknowledge((await first.read(7)).end);
    expect(await waiting(first)).toEqual(range(7, 20));
    expect(first.depth).toBe(13);
    await first[Symbol.asyncDispose]();

    const second = await reopened(disk.afterKill());
    expect(await waiting(second)).toEqual(range(7, 20));
    expect(second.depth).toBe(13);
    await append(second, 20);
    expect(await waiting(second)).toEqual(range(7, 21));
    second.acknowledge((await second.read(1_000)).end);
    expect([await waiting(second), second.depth]).toEqual([[], 0]);
  });

  it("writes what is appended at once as one, and syncs it as one within 10 ms", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const outbox = await openOutbox(disk, clock, recorder(), oneSegment);
    const before = { ...disk.counts };
    await Promise.all(range(0, 500).map((number) => outbox.append(usageRecord(number))));
    expect(disk.counts.write! - before.write!).toBeLessThanOrEqual(3); // the header, the first, all the others
    await clock.advanceAsync(10);
    expect(disk.counts.sync! - before.sync!).toBe(1);
    expect(await waiting(await reopened(disk.afterPowerCut()))).toEqual(range(0, 500));
  });

  it("tells how old its oldest record is", async () => {
    const clock = new VirtualClock();
    const outbox = await openOutbox(new SimulatedDisk(), clock, recorder(), limits);
    expect(await outbox.oldestMs()).toBeUndefined();
    await append(outbox, 0);
    clock.advance(4_000);
    await append(outbox, 1);
    clock.advance(1_000);
    expect(await outbox.oldestMs()).toBe(5_000);
    outbox.acknowledge((await outbox.read(1)).end);
    expect(await outbox.oldestMs()).toBe(1_000);
  });

  it("closes after 2 s though its disk hangs", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const outbox = await openOutbox(disk, clock, recorder(), limits);
    await append(outbox, 0);
    disk.hangs = true;
    void outbox.append(usageRecord(1));
    let isClosed = false;
    void outbox[Symbol.asyncDispose]().then(() => (isClosed = true));
    await clock.advanceAsync(1_999);
    expect(isClosed).toBe(false);
    await clock.advanceAsync(1);
    expect(isClosed).toBe(true);
    expect(await waiting(await reopened(disk.afterKill()))).toEqual([0]);
  });

  it("refuses what is appended after it was closed, and says so", async () => {
    const outbox = await reopened(new SimulatedDisk());
    await outbox[Symbol.asyncDispose]();
    await expect(outbox.append(usageRecord(1))).rejects.toThrow("closed");
    expect(outbox.admitting).toBe(false);
  });
});

describe("recovery", () => {
  async function written(count: number): Promise<SimulatedDisk> {
    const disk = new SimulatedDisk();
    const outbox = await openOutbox(disk, new VirtualClock(), recorder(), oneSegment);
    await append(outbox, ...range(0, count));
    return disk.afterKill();
  }

  it("finds every whole record and cuts off the rest, wherever the last three were torn", async () => {
    const disk = await written(8);
    const name = segmentName(1);
    const content = disk.content(name);
    const frameBytes = (content.length - headerBytes) / 8;
    for (let cut = content.length - 3 * frameBytes; cut <= content.length; cut++) {
      const torn = new SimulatedDisk([[name, Buffer.from(content.subarray(0, cut))]]);
      const events = recorder();
      const whole = Math.floor((cut - headerBytes) / frameBytes);
      const over = (cut - headerBytes) % frameBytes;
      const outbox = await reopened(torn, events);
      expect(await waiting(outbox)).toEqual(range(0, whole));
      expect(events.heard).toEqual(over === 0 ? [] : [`torn ${over}`]);
      // what was cut off is not found again, and new records follow
      await append(outbox, 99);
      const again = recorder();
      expect(await waiting(await reopened(torn.afterKill(), again))).toEqual([...range(0, whole), 99]);
      expect(again.heard).toEqual([]);
    }
  });

  it("skips one record for any flipped bit in it, and reports it", async () => {
    const disk = await written(6);
    const name = segmentName(1);
    const content = disk.content(name);
    const frameBytes = (content.length - headerBytes) / 6;
    const start = headerBytes + 2 * frameBytes;
    for (let bit = start * 8; bit < (start + frameBytes) * 8; bit++) {
      const flipped = Buffer.from(content);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      const events = recorder();
      const outbox = await reopened(new SimulatedDisk([[name, flipped]]), events);
      expect(await waiting(outbox)).toEqual([0, 1, 3, 4, 5]);
      expect(outbox.depth).toBe(5);
      expect(events.heard).toEqual([`damaged ${frameBytes}`]);
    }
  });

  it("loses nothing to segments that were copied or swapped, at any cursor", async () => {
    for (let acknowledged = 0; acknowledged <= 12; acknowledged++) {
      const disk = new SimulatedDisk();
      const outbox = await reopened(disk);
      await append(outbox, ...range(0, 12));
      if (acknowledged > 0) outbox.acknowledge((await outbox.read(acknowledged)).end);
      await outbox[Symbol.asyncDispose]();
      const segments = disk.list().filter((name) => name.endsWith(".usage"));
      expect(segments.length).toBeGreaterThan(2);
      const swapped = disk.afterKill();
      swapped.put(segments[0]!, disk.content(segments.at(-1)!));
      swapped.put(segments.at(-1)!, disk.content(segments[0]!));
      swapped.put(segmentName(40), disk.content(segments[1]!));
      const again = await reopened(swapped);
      expect(await waiting(again)).toEqual(expect.arrayContaining(range(acknowledged, 12)));
      again.acknowledge((await again.read(1_000)).end);
      await again[Symbol.asyncDispose]();
      expect(await waiting(await reopened(swapped.afterKill()))).toEqual([]);
    }
  });

  it("delivers everything again if the cursor is lost or damaged", async () => {
    const disk = await written(5);
    const outbox = await reopened(disk);
    outbox.acknowledge((await outbox.read(3)).end);
    await outbox[Symbol.asyncDispose]();
    expect(await waiting(await reopened(disk.afterKill()))).toEqual([3, 4]);
    disk.put("cursor", Buffer.from('{"segm'));
    expect(await waiting(await reopened(disk.afterKill()))).toEqual(range(0, 5));
  });

  it("never gives the number of an acknowledged segment to a new one", async () => {
    const disk = await written(5);
    const outbox = await reopened(disk);
    outbox.acknowledge((await outbox.read(5)).end);
    await outbox[Symbol.asyncDispose]();
    await disk.remove(segmentName(1));
    const again = await reopened(disk);
    await append(again, 7);
    await again[Symbol.asyncDispose]();
    expect(await waiting(await reopened(disk))).toEqual([7]);
  });
});

describe("acknowledged segments", () => {
  it("are kept for an hour, over restarts, and can be asked for again", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const outbox = await openOutbox(disk, clock, recorder(), limits);
    outbox.committedTo("first");
    await append(outbox, ...range(0, 12));
    outbox.acknowledge((await outbox.read(12)).end);
    await clock.advanceAsync(1_800_000);
    await outbox[Symbol.asyncDispose]();
    const again = await openOutbox(disk, clock, recorder(), limits);
    expect(await waiting(again)).toEqual([]);
    expect(again.committedTo("first")).toBe(false);
    expect(await waiting(again)).toEqual([]);
    expect(again.committedTo("second")).toBe(true);
    expect(await waiting(again)).toEqual(range(0, 12));
    expect(again.depth).toBe(12);
    again.acknowledge((await again.read(12)).end);
    await clock.advanceAsync(3_700_000);
    expect(disk.list().filter((name) => name.endsWith(".usage"))).toEqual([]);
    again.committedTo("third");
    expect(await waiting(again)).toEqual([]);
  });

  it("are asked for once by a name that comes in turn with another one", async () => {
    const outbox = await openOutbox(new SimulatedDisk(), new VirtualClock(), recorder(), limits);
    await append(outbox, 0);
    expect(["old", "new", "old", "new"].map((ledger) => outbox.committedTo(ledger))).toEqual([
      false,
      true,
      false,
      false,
    ]);
  });

  it("are kept for no more than an hour after the host's clock was set back", async () => {
    const disk = new SimulatedDisk();
    const twoDaysMs = 2 * 86_400_000;
    const outbox = await openOutbox(disk, new VirtualClock(1_800_000_000_000 + twoDaysMs), recorder(), limits);
    await append(outbox, ...range(0, 12));
    outbox.acknowledge((await outbox.read(12)).end);
    await outbox.tick();
    await outbox[Symbol.asyncDispose]();
    const clock = new VirtualClock();
    const again = await openOutbox(disk, clock, recorder(), limits);
    await clock.advanceAsync(3_500_000);
    expect(disk.list().filter((name) => name.endsWith(".usage"))).not.toEqual([]);
    expect(await waiting(again)).toEqual([]);
    await clock.advanceAsync(200_000);
    expect(disk.list().filter((name) => name.endsWith(".usage"))).toEqual([]);
  });

  it("are not deleted while a record of theirs waits", async () => {
    const clock = new VirtualClock();
    const outbox = await openOutbox(new SimulatedDisk(), clock, recorder(), limits);
    await append(outbox, ...range(0, 12));
    outbox.acknowledge((await outbox.read(5)).end);
    await clock.advanceAsync(8_000_000);
    expect(await waiting(outbox)).toEqual(range(5, 12));
  });
});

describe("a full disk", () => {
  it("closes admission, takes the records of what runs from the reserve, and opens again when there is room", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const events = recorder();
    const outbox = await openOutbox(disk, clock, events, oneSegment);
    await append(outbox, 0);
    expect(outbox.admitting).toBe(true);
    disk.capacityBytes = disk.usedBytes + 50; // less than a record
    await append(outbox, ...range(1, 10));
    expect(outbox.admitting).toBe(false);
    expect(await waiting(await reopened(disk.afterKill()))).toEqual(range(0, 10));
    await clock.advanceAsync(10_000);
    expect(outbox.admitting).toBe(false);
    disk.capacityBytes = Infinity;
    await clock.advanceAsync(1_000);
    expect(outbox.admitting).toBe(true);
    await append(outbox, 10);
    expect(await waiting(outbox)).toEqual(range(0, 11));
    expect(events.heard).toEqual(["full ENOSPC", "room"]);
  });

  it("holds back what does not even fit in the reserve until there is room", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const outbox = await openOutbox(disk, clock, recorder(), oneSegment);
    disk.capacityBytes = disk.usedBytes;
    let written = 0;
    const all = Promise.all(range(0, 40).map((number) => outbox.append(usageRecord(number)).then(() => written++)));
    await clock.advanceAsync(5_000);
    const early = written;
    expect(early).toBeLessThan(40);
    disk.capacityBytes = Infinity;
    await clock.advanceAsync(1_000);
    await all;
    expect((await waiting(outbox)).toSorted((a, b) => a - b)).toEqual(range(0, 40));
  });

  it("keeps admission closed as long as a record cannot be written, though there seems to be room", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const events = recorder();
    const outbox = await openOutbox(disk, clock, events, limits);
    disk.fails = (call, _count, name) => (call === "write" && name.endsWith(".usage") ? "EDQUOT" : undefined);
    let written = false;
    const appended = outbox.append(usageRecord(1)).then(() => (written = true));
    for (let step = 0; step < 20; step++) {
      await clock.advanceAsync(500);
      expect([outbox.admitting, written]).toEqual([false, false]);
    }
    disk.fails = () => undefined;
    await clock.advanceAsync(1_000);
    await appended;
    expect(outbox.admitting).toBe(true);
    expect(events.heard).toEqual(["full EDQUOT", "room"]);
  });

  it("is noticed within a second without any write, while the reserve is still whole", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const events = recorder();
    const outbox = await openOutbox(disk, clock, events, limits);
    disk.capacityBytes = disk.usedBytes + 100;
    await clock.advanceAsync(1_000);
    expect(outbox.admitting).toBe(false);
    disk.capacityBytes = Infinity;
    await clock.advanceAsync(1_000);
    expect(outbox.admitting).toBe(true);
    expect(events.heard).toEqual(["full low", "room"]);
  });

  it("refuses from the start, if it is full then", async () => {
    const disk = new SimulatedDisk();
    disk.capacityBytes = 5_000;
    const events = recorder();
    const outbox = await openOutbox(disk, new VirtualClock(), events, { ...limits, reserveBytes: 8_192 });
    expect(outbox.admitting).toBe(false);
    expect(events.heard).toEqual(["full low"]);
    expect(disk.usedBytes).toBe(0);
  });
});

describe("a failing disk", () => {
  /**
   * Appends 40 records, five at a time, while some are acknowledged and the disk fails at random; then kills the agent,
   * or cuts the power. Returns the records whose append resolved and that are then neither acknowledged nor found.
   */
  async function lostOn(disk: SimulatedDisk): Promise<number[]> {
    const clock = new VirtualClock();
    const outbox = await opened(disk, clock);
    const acknowledged = new Set<number>();
    for (let number = 0; number < 40; number += 5) {
      let resolved = 0;
      for (const each of range(number, number + 5)) void outbox.append(usageRecord(each)).then(() => resolved++);
      for (let waitedMs = 0; waitedMs < 60_000 && (waitedMs < 50 || resolved < 5); waitedMs += 50)
        await clock.advanceAsync(50);
      expect(resolved).toBe(5);
      const batch = number === 15 ? await outbox.read(8).catch(() => undefined) : undefined;
      if (!batch) continue;
      outbox.acknowledge(batch.end);
      for (const { record } of batch.records) acknowledged.add(numberOf(record));
    }
    await clock.advanceAsync(1_000);
    disk.fails = () => undefined;
    await clock.advanceAsync(1_000);
    expect(outbox.admitting).toBe(true);
    const found = await Promise.all(
      [disk.afterKill(), disk.afterPowerCut()].map(async (after) => waiting(await reopened(after))),
    );
    return range(0, 40).filter(
      (number) => !acknowledged.has(number) && !found.every((numbers) => numbers.includes(number)),
    );
  }

  /** Opens the outbox. If it cannot be opened, it says why, and opens once the disk works again. */
  async function opened(disk: SimulatedDisk, clock: VirtualClock): Promise<Outbox> {
    for (;;) {
      try {
        return await openOutbox(disk, clock, recorder(), limits);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EIO") throw error;
      }
    }
  }

  it.each([1, 2, 5, 30])("loses nothing when any call fails, %i in a row", async (inARow) => {
    const healthy = new SimulatedDisk();
    expect(await lostOn(healthy)).toEqual([]);
    for (let n = 1; n <= healthy.calls; n++) {
      const disk = new SimulatedDisk();
      disk.fails = (_call, count) => (count >= n && count < n + inARow ? "EIO" : undefined);
      expect(await lostOn(disk)).toEqual([]);
    }
  });

  it.each<DiskCall>(["write", "sync", "syncNames", "truncate", "rename", "remove", "close", "open"])(
    "that often fails to %s loses nothing",
    async (bad) => {
      for (let seed = 1; seed <= 20; seed++) {
        const random = createRandom(seed);
        const disk = new SimulatedDisk();
        disk.fails = (call) => (call === bad && random.chance(0.4) ? "EIO" : undefined);
        expect(await lostOn(disk)).toEqual([]);
      }
    },
  );

  it("writes again, elsewhere, what it could not sync", async () => {
    const disk = new SimulatedDisk();
    const clock = new VirtualClock();
    const outbox = await openOutbox(disk, clock, recorder(), oneSegment);
    disk.fails = (call) => (call === "sync" ? "EIO" : undefined);
    await append(outbox, 0, 1, 2);
    await clock.advanceAsync(10);
    disk.fails = () => undefined;
    await clock.advanceAsync(300);
    expect(new Set(await waiting(await reopened(disk.afterPowerCut())))).toEqual(new Set([0, 1, 2]));
  });
});
