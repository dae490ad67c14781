/**
 * The usage outbox: what every answer used, on this host's disk before the last byte of the answer leaves, and there until
 * a router has committed it. An append that resolved survives a kill of the agent; a power cut can take what was appended
 * in the last 10 ms and a sync. Records are delivered at least once: the cursor may lag behind what was acknowledged.
 */
import { every, within, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { OutboxCursor, type CursorEvents } from "./outbox-cursor.ts";
import type { OutboxDisk } from "./outbox-disk.ts";
import { recoverOutbox, type Position, type Recovered, type RecoveryEvents, type Segment } from "./outbox-recovery.ts";
import { OutboxReserve } from "./outbox-reserve.ts";
import { OutboxWriter } from "./outbox-writer.ts";
import { decodeRecord, encodeRecord, type StoredRecord } from "./record-codec.ts";
import { encodeFrame, headerBytes, parseFrames, segmentName } from "./segment.ts";

export interface OutboxEvents extends CursorEvents, RecoveryEvents {
  /** The disk took no more, or nearly so: new requests are refused. `code` is of the system, or `low`. */
  outboxFull(code: string): void;
  /** There is room again: requests are admitted. */
  outboxRoomAgain(): void;
  /** Records of a version that this agent does not know were passed over. */
  outboxUnknownVersion(records: number): void;
}

export interface OutboxLimits {
  readonly segmentBytesMax: number;
  /** Held back for the records of running requests. */
  readonly reserveBytes: number;
  /** With less free space than this nothing new is admitted. */
  readonly freeBytesMin: number;
  /** How long acknowledged segments are kept, for a router whose database lost its last commits. */
  readonly keepMs: number;
}

export const outboxLimits: OutboxLimits = {
  segmentBytesMax: 4 << 20,
  reserveBytes: 1 << 20,
  freeBytesMin: 1 << 20,
  keepMs: 3_600_000,
};

const tickMs = 500;
/** A disk that hangs keeps no agent from ending. */
const closeMsMax = 2_000;

export interface Batch {
  /** The cursor, from which it was read. */
  readonly start: Position;
  readonly records: readonly StoredRecord[];
  /** Where the next batch begins. */
  readonly end: Position;
}

/** Opens the outbox of a directory, and makes whole what an earlier agent left. */
export async function openOutbox(
  disk: OutboxDisk,
  clock: Clock,
  events: OutboxEvents,
  limits: OutboxLimits = outboxLimits,
): Promise<Outbox> {
  const stored = new OutboxCursor(disk);
  const found = await recoverOutbox(disk, await stored.load(events), events);
  const outbox = new Outbox(disk, clock, events, limits, stored, found);
  await outbox.tick();
  return outbox;
}

export class Outbox implements AsyncDisposable {
  readonly #disk: OutboxDisk;
  readonly #clock: Clock;
  readonly #events: OutboxEvents;
  readonly #limits: OutboxLimits;
  readonly #reserve: OutboxReserve;
  readonly #storedCursor: OutboxCursor;
  readonly #writer: OutboxWriter;
  /** By number, so by age. */
  readonly #segments: Segment[];
  readonly #ticks: Timer;
  #ticking: Promise<void> = Promise.resolve();
  #cursor: Position;
  #cursorSaved = true;
  #enoughFree = false;
  #admitted = true;
  #closed = false;
  #onAppend: () => void = () => {};

  constructor(
    disk: OutboxDisk,
    clock: Clock,
    events: OutboxEvents,
    limits: OutboxLimits,
    storedCursor: OutboxCursor,
    found: Recovered,
  ) {
    this.#disk = disk;
    this.#clock = clock;
    this.#events = events;
    this.#limits = limits;
    this.#storedCursor = storedCursor;
    this.#segments = found.segments;
    this.#cursor = found.cursor;
    this.#reserve = new OutboxReserve(disk, limits.reserveBytes);
    this.#writer = new OutboxWriter({
      disk,
      clock,
      reserve: this.#reserve,
      segments: found.segments,
      nextNumber: found.nextNumber,
      segmentBytesMax: limits.segmentBytesMax,
      onWritten: () => this.#onAppend(),
      onFailed: (code) => this.#judge(code),
    });
    this.#ticks = every(clock, tickMs, () => this.tick());
  }

  /** Whether new requests may begin: there is room for the records of all that run. */
  get admitting(): boolean {
    return this.#reserve.held && this.#enoughFree && !this.#closed;
  }

  /** Everything before it is acknowledged. */
  get cursor(): Position {
    return this.#cursor;
  }

  /** Records that are not acknowledged. */
  get depth(): number {
    const ahead = this.#segments.filter(({ number }) => number >= this.#cursor.segment);
    const passed = ahead[0]?.number === this.#cursor.segment ? this.#cursor.index : 0;
    return ahead.reduce((sum, { records }) => sum + records, -passed);
  }

  /** Age of the oldest record that is not acknowledged; undefined if there is none. */
  async oldestMs(): Promise<number | undefined> {
    const [oldest] = (await this.read(1)).records;
    return oldest && Math.max(0, this.#clock.now() - oldest.writtenAtMs);
  }

  /** Resolves when the record is in the file. Waits for room if there is none; rejects only when the outbox closes. */
  async append(record: UsageRecord): Promise<void> {
    if (this.#closed) throw new Error("the usage outbox is closed");
    await this.#writer.write(encodeFrame(encodeRecord({ record, writtenAtMs: this.#clock.now() })));
  }

  /** Calls back each time after records were appended. */
  onAppend(callback: () => void): void {
    this.#onAppend = callback;
  }

  /** The next records after the cursor, in the order of their appending; fewer where some cannot be read. */
  async read(max: number): Promise<Batch> {
    const records: StoredRecord[] = [];
    const start = this.#cursor;
    let end = start;
    let left = max;
    for (const segment of this.#segments.filter(({ number }) => number >= end.segment)) {
      const from = segment.number === end.segment ? end : { offset: headerBytes, index: 0 };
      const bytesLeft = segment.bytes - from.offset;
      if (bytesLeft <= 0) continue;
      if (left === 0) break;
      const bytes = await this.#readFile(segment, from.offset, bytesLeft);
      const { frames, end: parsedTo } = parseFrames(bytes, 0, left);
      left -= frames.length;
      const known = frames.flatMap(({ payload }) => decodeRecord(payload) ?? []);
      if (known.length < frames.length) this.#events.outboxUnknownVersion(frames.length - known.length);
      records.push(...known);
      // there were frames here once; if none is left, the rest of this segment is lost
      if (frames.length === 0) this.#events.outboxDamaged(bytesLeft);
      const offset = from.offset + (frames.length === 0 ? bytesLeft : parsedTo);
      end = { segment: segment.number, offset, index: from.index + frames.length };
    }
    return { start, records, end };
  }

  /** Everything before `position` is committed. False if that was known. */
  acknowledge(position: Position): boolean {
    if (!isBefore(this.#cursor, position)) return false;
    this.#moveCursor(position);
    return true;
  }

  /** What was acknowledged since then counts as unacknowledged again, and what stands before it in the same segment. */
  rewind(sinceMs: number): void {
    const first = this.#segments.findIndex(({ acknowledgedAtMs: atMs }) => atMs === undefined || atMs >= sinceMs);
    if (first < 0) return;
    for (const segment of this.#segments.slice(first)) delete segment.acknowledgedAtMs;
    const start = { segment: this.#segments[first]!.number, offset: headerBytes, index: 0 };
    if (isBefore(start, this.#cursor)) this.#moveCursor(start);
  }

  /** Looks after free space, the cursor and old segments. What fails here is tried again at the next tick. */
  tick(): Promise<void> {
    this.#ticking = this.#lookAfterSpace().then(() => this.#lookAfterSegments().catch(() => {}));
    return this.#ticking;
  }

  /** Tries once more to write what waits, and refuses the rest, unless the disk hangs for 2 s. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#ticks.cancel();
    await within(this.#clock, closeMsMax, this.#finish());
  }

  async #finish(): Promise<void> {
    await this.#ticking;
    await this.#writer.close();
    await this.#saveCursor().catch(() => {});
  }

  async #lookAfterSpace(): Promise<void> {
    this.#enoughFree = await this.#disk.freeBytes().then(
      (bytes) => bytes >= this.#limits.freeBytesMin,
      () => false,
    );
    if (this.#enoughFree && !this.#writer.failing) await this.#reserve.hold();
    this.#judge("low");
  }

  async #lookAfterSegments(): Promise<void> {
    const nowMs = this.#clock.now();
    const { segment: number, offset } = this.#cursor;
    for (const segment of this.#segments) {
      const passed = segment.number < number || (segment.number === number && offset >= segment.bytes);
      // a time that is still to come is of before the clock was set back, and could keep the segment for years
      const known = segment.acknowledgedAtMs !== undefined && segment.acknowledgedAtMs <= nowMs;
      if (!passed || segment === this.#writer.active || known) continue;
      segment.acknowledgedAtMs = nowMs;
      this.#cursorSaved = false;
    }
    if (!this.#cursorSaved) {
      this.#cursorSaved = true;
      await this.#saveCursor().catch(() => (this.#cursorSaved = false));
    }
    const isOld = ({ acknowledgedAtMs: atMs }: Segment) => atMs !== undefined && nowMs - atMs >= this.#limits.keepMs;
    for (const segment of this.#segments.filter(isOld)) {
      await this.#disk.remove(segmentName(segment.number));
      this.#segments.splice(this.#segments.indexOf(segment), 1);
    }
  }

  /** Tells once when admission closes, and once when it opens again. */
  #judge(code: string): void {
    if (this.#admitted === this.admitting) return;
    this.#admitted = this.admitting;
    if (this.#admitted) this.#events.outboxRoomAgain();
    else this.#events.outboxFull(code);
  }

  #moveCursor(position: Position): void {
    this.#cursor = position;
    this.#cursorSaved = false;
  }

  async #saveCursor(): Promise<void> {
    const { segment, offset } = this.#cursor;
    const passed = this.#segments.flatMap(({ number, acknowledgedAtMs: atMs }) =>
      atMs === undefined ? [] : [[number, atMs]],
    );
    const acknowledged = Object.fromEntries(passed) as Record<string, number>;
    await this.#storedCursor.save({ segment, offset, acknowledged });
  }

  async #readFile({ number }: Segment, offset: number, length: number): Promise<Buffer> {
    const file = await this.#disk.open(segmentName(number), "existing");
    try {
      return await file.read(offset, length);
    } finally {
      await file.close();
    }
  }
}

function isBefore(a: Position, b: Position): boolean {
  return a.segment < b.segment || (a.segment === b.segment && a.offset < b.offset);
}
