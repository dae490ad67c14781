/**
 * The usage outbox: usage records on this host's disk, written before the last byte of their answers is sent, and kept
 * until a router has committed them. A resolved append survives a kill of the agent. A power cut can lose the appends
 * of the last 10 ms and one sync. Records are delivered at least once, because the stored cursor may lag behind.
 */
import { every, within, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { OutboxCursor, type CursorEvents } from "./outbox-cursor.ts";
import type { OutboxDisk } from "./outbox-disk.ts";
import { isBefore, recoverOutbox } from "./outbox-recovery.ts";
import type { Position, Recovered, RecoveryEvents, Segment } from "./outbox-recovery.ts";
import { OutboxReserve } from "./outbox-reserve.ts";
import { OutboxWriter } from "./outbox-writer.ts";
import { decodeRecord, encodeRecord, type StoredRecord } from "./record-codec.ts";
import { encodeFrame, headerBytes, parseFrames, segmentName } from "./segment.ts";

export interface OutboxEvents extends CursorEvents, RecoveryEvents {
  /** The disk is full, or nearly so, and new requests are refused. `code`: the system's error code, or `low`. */
  outboxFull(code: string): void;
  /** There is room again, and requests are admitted. */
  outboxRoomAgain(): void;
  /** Records of a version that this agent does not know were skipped. */
  outboxUnknownVersion(records: number): void;
}

export const outboxLimits = {
  segmentBytesMax: 4 << 20,
  /** Space in reserve for the records of running requests. */
  reserveBytes: 1 << 20,
  /** Free space below which no new requests are admitted. */
  freeBytesMin: 1 << 20,
  /** How long acknowledged segments are kept, for a router whose database lost its last commits. */
  keepMs: 3_600_000,
};
export type OutboxLimits = Readonly<typeof outboxLimits>;

const tickMs = 500;
/** For some seconds after a change, routers of one database may name an older state of it. */
const ledgersMax = 8;
/** A hanging disk must not keep the agent from ending. */
const closeMsMax = 2_000;

export interface Batch {
  /** The cursor at the time of the read. */
  readonly start: Position;
  readonly records: readonly StoredRecord[];
  /** Where the next batch begins. */
  readonly end: Position;
}

/** Opens the outbox of a directory and repairs what an earlier agent left. */
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
  /** Sorted by number, oldest first. */
  readonly #segments: Segment[];
  readonly #ticks: Timer;
  #ticking: Promise<void> = Promise.resolve();
  /** All records before it are acknowledged. */
  cursor: Position;
  #ledgers: readonly string[];
  #cursorSaved = true;
  /** The free space at the last check. NaN if the check failed. */
  #freeBytes = NaN;
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
    this.cursor = found.cursor;
    this.#ledgers = found.ledgers;
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

  /** Whether new requests may be admitted. True if there is space for the records of all running requests. */
  get admitting(): boolean {
    return this.#reserve.held && this.#isEnoughFree && !this.#closed;
  }

  get #isEnoughFree(): boolean {
    return this.#freeBytes >= this.#limits.freeBytesMin;
  }

  /** The bytes that may still be written to the disk, as read last. Undefined if the disk does not report them. */
  get freeBytes(): number | undefined {
    return Number.isFinite(this.#freeBytes) ? this.#freeBytes : undefined;
  }

  /** The number of unacknowledged records. */
  get depth(): number {
    const ahead = this.#segments.filter(({ number }) => number >= this.cursor.segment);
    const passed = ahead[0]?.number === this.cursor.segment ? this.cursor.index : 0;
    return ahead.reduce((sum, { records }) => sum + records, -passed);
  }

  /** Returns the age in milliseconds of the oldest unacknowledged record, or undefined if there is none. */
  async oldestMs(): Promise<number | undefined> {
    const [oldest] = (await this.read(1)).records;
    return oldest && Math.max(0, this.#clock.now() - oldest.writtenAtMs);
  }

  /**
   * Resolves when the record is in the file. Waits while there is no space, and rejects only when the outbox closes.
   */
  async append(record: UsageRecord): Promise<void> {
    if (this.#closed) throw new Error("the usage outbox is closed");
    await this.#writer.write(encodeFrame(encodeRecord({ record, writtenAtMs: this.#clock.now() })));
  }

  /** Calls back after each append of records. */
  onAppend(callback: () => void): void {
    this.#onAppend = callback;
  }

  /** Returns the next records after the cursor, in the order of their appends. Returns fewer if some are unreadable. */
  async read(max: number): Promise<Batch> {
    const records: StoredRecord[] = [];
    const start = this.cursor;
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
      // Frames were written here. If none is readable, the rest of this segment is lost.
      if (frames.length === 0) this.#events.outboxDamaged(bytesLeft);
      const offset = from.offset + (frames.length === 0 ? bytesLeft : parsedTo);
      end = { segment: segment.number, offset, index: from.index + frames.length };
    }
    return { start, records, end };
  }

  /** Marks all records before `position` as committed. Returns false if they already were. */
  acknowledge(position: Position): boolean {
    if (!isBefore(this.cursor, position)) return false;
    this.#moveCursor(position);
    return true;
  }

  /**
   * `ledger`: identifies the state of the routers' database that contains acknowledged records. A new state may have
   * lost commits, so every held record counts as unacknowledged again. Returns whether that happened.
   */
  committedTo(ledger: string): boolean {
    if (this.#ledgers.includes(ledger)) return false;
    const isFirst = this.#ledgers.length === 0;
    this.#ledgers = [...this.#ledgers.slice(1 - ledgersMax), ledger];
    this.#cursorSaved = false;
    const [oldest] = this.#segments;
    if (isFirst || !oldest) return false;
    for (const segment of this.#segments) delete segment.acknowledgedAtMs;
    this.#moveCursor({ segment: oldest.number, offset: headerBytes, index: 0 });
    return true;
  }

  /** Checks free space, stores the cursor and deletes old segments. A failed step is retried at the next tick. */
  tick(): Promise<void> {
    this.#ticking = this.#lookAfterSpace().then(() =>
      this.#lookAfterCursor()
        .then(() => this.#removeOldSegments())
        .catch(() => {}),
    );
    return this.#ticking;
  }

  /** Tries once more to write waiting records, and rejects the rest. Gives up after 2 s if the disk hangs. */
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
    this.#freeBytes = await this.#disk.freeBytes().catch(() => NaN);
    if (this.#isEnoughFree && !this.#writer.failing) await this.#reserve.hold();
    this.#judge("low");
  }

  /** Records which segments are acknowledged by now, and stores the cursor. */
  async #lookAfterCursor(): Promise<void> {
    const nowMs = this.#clock.now();
    const { segment: number, offset } = this.cursor;
    for (const segment of this.#segments) {
      const passed = segment.number < number || (segment.number === number && offset >= segment.bytes);
      // A time in the future was stored before the clock was set back, and could keep the segment for years.
      const known = segment.acknowledgedAtMs !== undefined && segment.acknowledgedAtMs <= nowMs;
      if (!passed || segment === this.#writer.active || known) continue;
      segment.acknowledgedAtMs = nowMs;
      this.#cursorSaved = false;
    }
    if (!this.#cursorSaved) {
      this.#cursorSaved = true;
      await this.#saveCursor().catch(() => (this.#cursorSaved = false));
    }
  }

  async #removeOldSegments(): Promise<void> {
    const nowMs = this.#clock.now();
    const isOld = ({ acknowledgedAtMs: atMs }: Segment) => atMs !== undefined && nowMs - atMs >= this.#limits.keepMs;
    for (const segment of this.#segments.filter(isOld)) {
      if (!isOld(segment)) continue; // A new ledger requested it again while another segment was removed.
      await this.#disk.remove(segmentName(segment.number));
      this.#segments.splice(this.#segments.indexOf(segment), 1);
    }
  }

  /** Emits one event when admission stops, and one when it starts again. */
  #judge(code: string): void {
    if (this.#admitted === this.admitting) return;
    this.#admitted = this.admitting;
    if (this.#admitted) this.#events.outboxRoomAgain();
    else this.#events.outboxFull(code);
  }

  #moveCursor(position: Position): void {
    this.cursor = position;
    this.#cursorSaved = false;
  }

  async #saveCursor(): Promise<void> {
    const { segment, offset } = this.cursor;
    const passed = this.#segments.flatMap(({ number, acknowledgedAtMs: atMs }) =>
      atMs === undefined ? [] : [[number, atMs]],
    );
    const acknowledged = Object.fromEntries(passed) as Record<string, number>;
    await this.#storedCursor.save({ segment, offset, acknowledged, ledgers: this.#ledgers });
  }

  async #readFile({ number }: Segment, offset: number, length: number): Promise<Buffer> {
    await using file = await this.#disk.open(segmentName(number), "existing");
    return await file.read(offset, length);
  }
}
