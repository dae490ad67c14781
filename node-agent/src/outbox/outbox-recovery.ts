/** What an outbox finds when it is opened: its segments, made whole again, and how far they were acknowledged. */
import type { StoredCursor } from "./outbox-cursor.ts";
import type { OutboxDisk } from "./outbox-disk.ts";
import {
  decodeHeader,
  encodeHeader,
  headerBytes,
  parseFrames,
  segmentName,
  segmentNumber,
  type Frame,
} from "./segment.ts";

/** A segment as far as it holds whole records. */
export interface Segment {
  readonly number: number;
  /** Up to here; what follows in the file is not part of it. */
  bytes: number;
  records: number;
  /** When it was seen to be acknowledged as a whole. */
  acknowledgedAtMs?: number;
}

/** A place between two records. */
export interface Position {
  readonly segment: number;
  readonly offset: number;
  /** How many records of the segment come before it. */
  readonly index: number;
}

export interface RecoveryEvents {
  /** Bytes in the middle of a segment that are no record were skipped. */
  outboxDamaged(bytes: number): void;
  /** Bytes at the end of a segment that are no whole record were cut off. */
  outboxTornTail(bytes: number): void;
}

export interface Recovered {
  /** By number. */
  readonly segments: Segment[];
  /** Everything before it is acknowledged. */
  readonly cursor: Position;
  readonly nextNumber: number;
}

export async function recoverOutbox(
  disk: OutboxDisk,
  stored: StoredCursor,
  events: RecoveryEvents,
): Promise<Recovered> {
  const numbers = (await disk.names()).flatMap((name) => segmentNumber(name) ?? []).sort((a, b) => a - b);
  let nextNumber = Math.max(stored.segment, ...numbers) + 1;
  const segments: Segment[] = [];
  const adopted: Segment[] = [];
  let cursor: Position = { segment: stored.segment, offset: stored.offset, index: 0 };
  for (const number of numbers) {
    const { frames, bytes, saysNumber } = await scan(disk, number, events);
    const found = { bytes, records: frames.length };
    if (frames.length === 0) await disk.remove(segmentName(number));
    else if (saysNumber !== number) adopted.push({ number: await rename(disk, number, nextNumber++), ...found });
    else {
      const acknowledgedAtMs = stored.acknowledged[number];
      segments.push({ number, ...found, ...(acknowledgedAtMs === undefined ? {} : { acknowledgedAtMs }) });
      if (number === cursor.segment)
        cursor = { ...cursor, index: frames.filter((frame) => frame.end <= cursor.offset).length };
    }
  }
  return { segments: [...segments, ...adopted], cursor, nextNumber };
}

async function scan(
  disk: OutboxDisk,
  number: number,
  events: RecoveryEvents,
): Promise<{ frames: readonly Frame[]; bytes: number; saysNumber: number | undefined }> {
  const file = await disk.open(segmentName(number), "existing");
  try {
    const size = await file.size();
    const content = await file.read(0, size);
    const { frames, damaged, end } = parseFrames(content, headerBytes);
    for (const { start, end: until } of damaged) events.outboxDamaged(until - start);
    if (end < size) {
      events.outboxTornTail(size - end);
      await file.truncate(end);
    }
    return { frames, bytes: end, saysNumber: decodeHeader(content) };
  } finally {
    await file.close();
  }
}

/**
 * A segment whose header is damaged or tells another number than its name (somebody copied or renamed files) is taken in
 * as a new one: nothing of it counts as acknowledged, and what is delivered twice is counted once.
 */
async function rename(disk: OutboxDisk, from: number, to: number): Promise<number> {
  const file = await disk.open(segmentName(from), "existing");
  try {
    await file.write(encodeHeader(to), 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await disk.rename(segmentName(from), segmentName(to));
  return to;
}
