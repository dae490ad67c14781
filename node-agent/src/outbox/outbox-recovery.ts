/** Recovers an outbox when it is opened: repairs its segments and finds its acknowledged position. */
import type { StoredCursor } from "./outbox-cursor.ts";
import { writeFile, type OutboxDisk } from "./outbox-disk.ts";
import {
  decodeHeader,
  encodeHeader,
  headerBytes,
  parseFrames,
  segmentName,
  segmentNumber,
  type Frame,
} from "./segment.ts";

export interface Segment {
  readonly number: number;
  /** The length of the segment. Later bytes of the file are not part of it. */
  bytes: number;
  records: number;
  /** The wall time at which it was seen to be completely acknowledged. */
  acknowledgedAtMs?: number;
}

/** A position between two records. */
export interface Position {
  readonly segment: number;
  readonly offset: number;
  /** The number of records of the segment before it. */
  readonly index: number;
}

type Place = Pick<Position, "segment" | "offset">;

export function isBefore(a: Place, b: Place): boolean {
  return a.segment < b.segment || (a.segment === b.segment && a.offset < b.offset);
}

export interface RecoveryEvents {
  /** Bytes in the middle of a segment that form no record were skipped. */
  outboxDamaged(bytes: number): void;
  /** Bytes at the end of a segment that form no complete record were cut off. */
  outboxTornTail(bytes: number): void;
}

export interface Recovered {
  /** Sorted by number. */
  readonly segments: Segment[];
  /** All records before it are acknowledged. */
  readonly cursor: Position;
  readonly nextNumber: number;
  readonly ledgers: readonly string[];
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
      segments.push({ number, ...found, acknowledgedAtMs: stored.acknowledged[number] });
      if (number === cursor.segment)
        cursor = { ...cursor, index: frames.filter((frame) => frame.end <= cursor.offset).length };
    }
  }
  return { segments: [...segments, ...adopted], cursor, nextNumber, ledgers: stored.ledgers };
}

async function scan(
  disk: OutboxDisk,
  number: number,
  events: RecoveryEvents,
): Promise<{ frames: readonly Frame[]; bytes: number; saysNumber: number | undefined }> {
  await using file = await disk.open(segmentName(number), "existing");
  const size = await file.size();
  const content = await file.read(0, size);
  const { frames, damaged, end } = parseFrames(content, headerBytes);
  for (const { start, end: until } of damaged) events.outboxDamaged(until - start);
  if (end < size) {
    events.outboxTornTail(size - end);
    await file.truncate(end);
  }
  return { frames, bytes: end, saysNumber: decodeHeader(content) };
}

/**
 * Gives a segment whose header disagrees with its name a new number. None of its records count as acknowledged, and
 * records that are delivered twice count once.
 */
async function rename(disk: OutboxDisk, from: number, to: number): Promise<number> {
  await writeFile(disk, segmentName(from), "existing", encodeHeader(to));
  await disk.rename(segmentName(from), segmentName(to));
  return to;
}
