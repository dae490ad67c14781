/** Opens, fills and reads the outbox on a simulated disk for tests. */
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { SimulatedDisk } from "./simulated-disk.ts";
import { numberOf, usageRecord } from "./usage-records.ts";
import { openOutbox, type Outbox, type OutboxEvents, type OutboxLimits } from "../../src/outbox/outbox.ts";

export const limits: OutboxLimits = {
  segmentBytesMax: 500,
  reserveBytes: 4_096,
  freeBytesMin: 4_096,
  keepMs: 3_600_000,
};
export const oneSegment: OutboxLimits = { ...limits, segmentBytesMax: 1 << 20 };

/** Describes each event of an outbox in words. */
export function eventsInWords(say: (text: string) => unknown): OutboxEvents {
  return {
    outboxCursorUnreadable: (file, reason) => say(`${file}: ${reason}`),
    outboxDamaged: (bytes) => say(`damaged ${bytes}`),
    outboxTornTail: (bytes) => say(`torn ${bytes}`),
    outboxFull: (code) => say(`full ${code}`),
    outboxRoomAgain: () => say("room"),
    outboxUnknownVersion: (records) => say(`unknown ${records}`),
  };
}

export function recorder(): OutboxEvents & { readonly heard: string[] } {
  const heard: string[] = [];
  return { heard, ...eventsInWords((text) => heard.push(text)) };
}

/** Opens a new outbox, with its own disk and clock. */
export async function newOutbox(of: OutboxLimits = limits) {
  const [disk, clock, events] = [new SimulatedDisk(), new VirtualClock(), recorder()];
  return { disk, clock, events, outbox: await openOutbox(disk, clock, events, of) };
}

export async function append(outbox: Outbox, ...numbers: number[]): Promise<void> {
  for (const number of numbers) await outbox.append(usageRecord(number));
}

/** Returns the numbers of the unacknowledged records. */
export async function waiting(outbox: Outbox): Promise<number[]> {
  return (await outbox.read(1_000_000)).records.map(({ record }) => numberOf(record));
}

export async function reopened(disk: SimulatedDisk, events = recorder()): Promise<Outbox> {
  return openOutbox(disk, new VirtualClock(), events, limits);
}

export function range(from: number, below: number): number[] {
  return Array.from({ length: below - from }, (_, index) => from + index);
}
