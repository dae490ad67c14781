import { describe, expect, it } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import {
  append,
  limits,
  newOutbox,
  oneSegment,
  range,
  recorder,
  reopened,
  waiting,
} from "../../test/outbox/outbox-steps.ts";
import { SimulatedDisk } from "../../test/outbox/simulated-disk.ts";
import { numberOf, usageRecord } from "../../test/outbox/usage-records.ts";
import { openOutbox } from "./outbox.ts";
import { encodeRecord } from "./record-codec.ts";
import { encodeFrame, encodeHeader, headerBytes, segmentName } from "./segment.ts";

describe("the outbox", () => {
  it("skips only records of a newer version, in portions of any size", async () => {
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

  it("writes concurrent appends at once, and syncs them together within 10 ms", async () => {
    const { disk, clock, outbox } = await newOutbox(oneSegment);
    const before = { ...disk.counts };
    await Promise.all(range(0, 500).map((number) => outbox.append(usageRecord(number))));
    expect(disk.counts.write! - before.write!).toBe(2); // One for the header, and one for all records.
    await clock.advanceAsync(10);
    expect(disk.counts.sync! - before.sync!).toBe(1);
    expect(await waiting(await reopened(disk.afterPowerCut()))).toEqual(range(0, 500));
  });

  it("reports the age of its oldest record", async () => {
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

  it("closes after 2 s even if its disk hangs", async () => {
    const { disk, clock, outbox } = await newOutbox();
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

  it("rejects appends after it was closed", async () => {
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

  it("finds every complete record and cuts off the rest, wherever the last three were torn [A5]", async () => {
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
      // The cut part is not found again, and new records follow.
      await append(outbox, 99);
      const again = recorder();
      expect(await waiting(await reopened(torn.afterKill(), again))).toEqual([...range(0, whole), 99]);
      expect(again.heard).toEqual([]);
    }
  });

  it("skips one record for any flipped bit in it, and reports it [A5]", async () => {
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

  it("loses no records if segments were copied or swapped, at any cursor [A5]", async () => {
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
  it("are kept for an hour, over restarts, and can be requested again", async () => {
    const { disk, clock, outbox } = await newOutbox();
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

  it("stay if they are requested again while older ones are being removed", async () => {
    const { disk, clock, outbox } = await newOutbox();
    outbox.committedTo("first");
    await append(outbox, ...range(0, 12));
    outbox.acknowledge((await outbox.read(12)).end);
    await outbox.tick();
    clock.stall(limits.keepMs);
    disk.delays = async (call) => void (call === "remove" && outbox.committedTo("second"));
    await outbox.tick();
    disk.delays = () => Promise.resolve();
    // The first segment was already being removed.
    expect(await waiting(outbox)).toEqual(range(3, 12));
  });

  it("are requested only once by a ledger name that alternates with another", async () => {
    const outbox = await openOutbox(new SimulatedDisk(), new VirtualClock(), recorder(), limits);
    await append(outbox, 0);
    expect(["old", "new", "old", "new"].map((ledger) => outbox.committedTo(ledger))).toEqual([
      false,
      true,
      false,
      false,
    ]);
  });

  it("are kept for at most an hour after the host's clock was set back", async () => {
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

  it("are not deleted while one of their records waits", async () => {
    const clock = new VirtualClock();
    const outbox = await openOutbox(new SimulatedDisk(), clock, recorder(), limits);
    await append(outbox, ...range(0, 12));
    outbox.acknowledge((await outbox.read(5)).end);
    await clock.advanceAsync(8_000_000);
    expect(await waiting(outbox)).toEqual(range(5, 12));
  });
});
