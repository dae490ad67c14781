/** The outbox on a simulated disk, as tests open, fill and read it. */
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

export function recorder(): OutboxEvents & { readonly heard: string[] } {
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

/** A new outbox, on a disk and a clock of its own. */
export async function newOutbox(of: OutboxLimits = limits) {
  const [disk, clock, events] = [new SimulatedDisk(), new VirtualClock(), recorder()];
  return { disk, clock, events, outbox: await openOutbox(disk, clock, events, of) };
}

export async function append(outbox: Outbox, ...numbers: number[]): Promise<void> {
  for (const number of numbers) await outbox.append(usageRecord(number));
}

/** Numbers of the unacknowledged records. */
export async function waiting(outbox: Outbox): Promise<number[]> {
  return (await outbox.read(1_000_000)).records.map(({ record }) => numberOf(record));
}

export async function reopened(disk: SimulatedDisk, events = recorder(), clock = new VirtualClock()): Promise<Outbox> {
  return openOutbox(disk, clock, events, limits);
}

export function range(from: number, below: number): number[] {
  return Array.from({ length: below - from }, (_, index) => from + index);
}
