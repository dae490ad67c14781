import { describe, expect, it } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { append, range, recorder, reopened, waiting } from "../../test/outbox/outbox-steps.ts";
import { SimulatedDisk } from "../../test/outbox/simulated-disk.ts";

const count = 12;
const acknowledged = 5;
const unacknowledged = range(acknowledged, count);

/** Writes an outbox of several segments, partly acknowledged, as a killed agent leaves it: with two cursor files. */
async function written(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  const outbox = await reopened(disk);
  await append(outbox, ...range(0, count));
  for (const upTo of [acknowledged - 3, acknowledged]) {
    const { end } = await outbox.read(upTo - (count - outbox.depth));
    outbox.acknowledge(end);
    await outbox.tick();
  }
  return disk.afterKill();
}

/**
 * Opens the outbox, appends, acknowledges everything and opens it again. Returns the records that were delivered first.
 */
async function liveOn(disk: SimulatedDisk, events = recorder()): Promise<number[]> {
  const outbox = await reopened(disk, events);
  const found = await waiting(outbox);
  await append(outbox, 99);
  expect(await waiting(outbox)).toEqual([...found, 99]);
  await outbox[Symbol.asyncDispose]();
  const again = await reopened(disk);
  expect(await waiting(again)).toEqual([...found, 99]);
  expect(again.depth).toBe(found.length + 1);
  again.acknowledge((await again.read(1_000)).end);
  await again[Symbol.asyncDispose]();
  expect(await waiting(await reopened(disk))).toEqual([]);
  return found;
}

function damages(content: Buffer): Map<string, Buffer> {
  const random = createRandom(11);
  const flips = Array.from({ length: content.length * 8 }, (_, bit) => {
    const flipped = Buffer.from(content);
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    return [`bit ${bit} flipped`, flipped] as const;
  });
  const cuts = Array.from({ length: content.length }, (_, at) => [`cut at ${at}`, content.subarray(0, at)] as const);
  const noise = (bytes: number) => Buffer.from(Array.from({ length: bytes }, () => random.below(256)));
  return new Map([
    ...flips,
    ...cuts,
    ["zeros", Buffer.alloc(content.length)],
    ["twice", Buffer.concat([content, content])],
    ["more behind it", Buffer.concat([content, noise(9)])],
    ...Array.from({ length: 20 }, (_, n) => [`noise ${n}`, noise(random.below(300))] as const),
  ]);
}

/** Cursors of the old form, without a checksum. Some have a flipped bit. */
const formBefore = [
  { segment: 1, offset: 300, acknowledged: {} },
  { segment: 3, offset: 99_999, acknowledged: { 1: 5, 2: 5 } },
  { segment: 99, offset: 16, acknowledged: {} },
  { segment: 1e300, offset: 16, acknowledged: {} },
  { segment: 2 },
  {},
  [],
  null,
  "cursor",
  7,
];

describe("the stored cursor", () => {
  it("is loaded unchanged", async () => {
    const events = recorder();
    expect(await liveOn(await written(), events)).toEqual(unacknowledged);
    expect(events.heard).toEqual([]);
  });

  it("that is damaged in any way is replaced by the older file: nothing is lost, and few records are delivered again", async () => {
    const disk = await written();
    for (const [name, content] of damages(disk.content("cursor"))) {
      const damaged = disk.afterKill();
      damaged.put("cursor", Buffer.from(content));
      const events = recorder();
      const found = await liveOn(damaged, events);
      expect([name, found]).toEqual([name, [acknowledged - 3, acknowledged - 2, acknowledged - 1, ...unacknowledged]]);
      expect([name, ...events.heard]).toEqual([name, expect.stringMatching(/^cursor: /)]);
    }
  });

  it("that is damaged in both files causes all records to be delivered again", async () => {
    const disk = await written();
    for (const [name, content] of damages(disk.content("cursor"))) {
      const damaged = disk.afterKill();
      damaged.put("cursor", Buffer.from(content));
      damaged.put("cursor.old", Buffer.from(content));
      const events = recorder();
      expect([name, await liveOn(damaged, events)]).toEqual([name, range(0, count)]);
      expect(events.heard.map((line) => line.split(":")[0])).toEqual(["cursor", "cursor.old"]);
    }
  });

  it.each(formBefore.map((form) => [JSON.stringify(form)]))(
    "of the old form, %s, causes all records to be delivered again",
    async (form) => {
      const disk = await written();
      await disk.remove("cursor.old");
      disk.put("cursor", Buffer.from(form));
      expect(await liveOn(disk)).toEqual(range(0, count));
    },
  );

  it("that cannot be read causes all records to be delivered again", async () => {
    const disk = await written();
    disk.fails = (call, _count, name) => (call === "read" && name.startsWith("cursor") ? "EIO" : undefined);
    const events = recorder();
    const outbox = await reopened(disk, events);
    expect(await waiting(outbox)).toEqual(range(0, count));
    expect(events.heard).toEqual(["cursor: EIO", "cursor.old: EIO"]);
  });

  it("that was restored from an older copy delivers records again that were acknowledged since", async () => {
    const disk = await written();
    disk.put("cursor", disk.content("cursor.old"));
    expect(await liveOn(disk)).toEqual(expect.arrayContaining(unacknowledged));
  });

  it("after the end of its segment, or in a missing segment, loses no records of other segments", async () => {
    const disk = await written();
    const segments = disk.list().filter((name) => name.endsWith(".usage"));
    const at = segments.find((_, index) => index === Math.floor(acknowledged / 3))!;
    for (const change of ["cut", "gone"]) {
      const changed = disk.afterKill();
      if (change === "gone") await changed.remove(at);
      else changed.put(at, Buffer.from(disk.content(at).subarray(0, 20)));
      const found = await liveOn(changed);
      expect([change, ...found.slice(-4)]).toEqual([change, 8, 9, 10, 11]);
    }
  });
});

describe("a cursor that was moved back", () => {
  it("is never replaced by the older file, wherever the agent is killed, whatever the state of the newer file", async () => {
    const steps = 30;
    for (let killedAt = 0; killedAt < steps; killedAt++) {
      const disk = await written();
      const outbox = await reopened(disk);
      outbox.acknowledge((await outbox.read(1_000)).end);
      await outbox.tick();
      outbox.committedTo("first");
      outbox.committedTo("second");
      let left: SimulatedDisk | undefined;
      const from = disk.calls;
      disk.fails = (_call, calls) => {
        if (calls - from === killedAt + 1) left = disk.afterKill();
        return undefined;
      };
      await outbox.tick();
      if (killedAt === steps - 1) left = disk.afterKill();
      if (!left) continue;
      const stored = await waiting(await reopened(left.afterKill()));
      if (stored.length === 0) continue; // Killed before any of the new cursor was written.
      left.put("cursor", Buffer.from("damaged"));
      expect(await waiting(await reopened(left)), `killed at ${killedAt}`).toEqual(range(0, count));
    }
  });
});
