import { describe, expect, it } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createRandom } from "@weiche/shared/random.ts";
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
import { SimulatedDisk, type DiskCall } from "../../test/outbox/simulated-disk.ts";
import { numberOf, usageRecord } from "../../test/outbox/usage-records.ts";
import { openOutbox, type Outbox } from "./outbox.ts";

describe("a full disk", () => {
  it("stops admission, takes records of running requests from the reserve, and admits again when there is room [A4]", async () => {
    const { disk, clock, events, outbox } = await newOutbox(oneSegment);
    await append(outbox, 0);
    expect(outbox.admitting).toBe(true);
    disk.capacityBytes = disk.usedBytes + 50; // Less than a record.
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

  it("holds back records that do not fit in the reserve until there is room", async () => {
    const { disk, clock, outbox } = await newOutbox(oneSegment);
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

  it("keeps admission stopped while a record cannot be written, even if there seems to be room", async () => {
    const { disk, clock, events, outbox } = await newOutbox();
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

  it("is noticed within a second without any write, while the reserve is still whole [A4]", async () => {
    const { disk, clock, events, outbox } = await newOutbox();
    disk.capacityBytes = disk.usedBytes + 100;
    await clock.advanceAsync(1_000);
    expect(outbox.admitting).toBe(false);
    disk.capacityBytes = Infinity;
    await clock.advanceAsync(1_000);
    expect(outbox.admitting).toBe(true);
    expect(events.heard).toEqual(["full low", "room"]);
  });

  it("stops admission from the start if the disk is full then", async () => {
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
   * Appends 40 records, five at a time, while some are acknowledged and the disk fails at random. Then kills the agent
   * or cuts the power. Returns the records whose append resolved and that are neither acknowledged nor found.
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

  /** Opens the outbox. A failed attempt names its reason, and another succeeds once the disk works again. */
  async function opened(disk: SimulatedDisk, clock: VirtualClock): Promise<Outbox> {
    for (;;) {
      try {
        return await openOutbox(disk, clock, recorder(), limits);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EIO") throw error;
      }
    }
  }

  it.each([1, 2, 5, 30])("loses nothing when any call fails, %i in a row [A4]", async (inARow) => {
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

  it("writes records again, elsewhere, if their sync failed", async () => {
    const { disk, clock, outbox } = await newOutbox(oneSegment);
    disk.fails = (call) => (call === "sync" ? "EIO" : undefined);
    await append(outbox, 0, 1, 2);
    await clock.advanceAsync(10);
    disk.fails = () => undefined;
    await clock.advanceAsync(300);
    expect(new Set(await waiting(await reopened(disk.afterPowerCut())))).toEqual(new Set([0, 1, 2]));
  });
});
