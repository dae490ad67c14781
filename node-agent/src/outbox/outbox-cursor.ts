/**
 * The acknowledged position of the outbox on disk: a file with a checksum, which is replaced atomically, and the
 * previous file. An unreadable file is ignored: records are then delivered again, which is harmless.
 *
 * cursor, cursor.old "WUC1", space, CRC-32 of what follows as 8 hexadecimal digits, space, JSON
 */
import { crc32 } from "node:zlib";
import { writeFile, type OutboxDisk } from "./outbox-disk.ts";

/** A position between two records of the outbox. All records before it are acknowledged. */
export interface StoredCursor {
  readonly segment: number;
  readonly offset: number;
  /** The wall time at which each completely acknowledged segment was acknowledged, by its number. */
  readonly acknowledged: Readonly<Record<string, number>>;
  /** Names of the states of the routers' database that acknowledged records are in, the newest last. */
  readonly ledgers: readonly string[];
}

export interface CursorEvents {
  /** The stored cursor is damaged, of another version, or unreadable. Records are delivered again. */
  outboxCursorUnreadable(file: string, reason: string): void;
}

const nothing: StoredCursor = { segment: 0, offset: 0, acknowledged: {}, ledgers: [] };
const magic = "WUC1";
const headLength = magic.length + 10;

const newest = "cursor";
const older = "cursor.old";
const unfinished = "cursor.new";

export class OutboxCursor {
  readonly #disk: OutboxDisk;
  /** The content of the newest file. Undefined if unknown. */
  #stored: StoredCursor | undefined;

  constructor(disk: OutboxDisk) {
    this.#disk = disk;
  }

  /** Returns the newest intact cursor. Without one, all records count as unacknowledged. */
  async load(events: CursorEvents): Promise<StoredCursor> {
    const names = await this.#disk.names();
    const read = async (name: string) => (names.includes(name) ? await this.#read(name, events) : undefined);
    this.#stored = await read(newest);
    return this.#stored ?? (await read(older)) ?? nothing;
  }

  /**
   * Replaces the newest file atomically. Keeps the older file unless its position is later, because it would then skip
   * records after a rewind.
   */
  async save(cursor: StoredCursor): Promise<void> {
    await writeFile(this.#disk, unfinished, "new", encodeCursor(cursor));
    const before = this.#stored;
    this.#stored = undefined;
    if (before && !isAhead(before, cursor)) await this.#disk.rename(newest, older);
    else await this.#disk.remove(older);
    await this.#disk.rename(unfinished, newest);
    this.#stored = cursor;
  }

  async #read(name: string, events: CursorEvents): Promise<StoredCursor | undefined> {
    try {
      await using file = await this.#disk.open(name, "existing");
      return decodeCursor(await file.read(0, await file.size()));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      events.outboxCursorUnreadable(name, code ?? message);
      return undefined;
    }
  }
}

function encodeCursor({ segment, offset, acknowledged, ledgers }: StoredCursor): Buffer {
  const text = JSON.stringify({ segment, offset, acknowledged, ledgers });
  return Buffer.from(`${magic} ${checksum(text)} ${text}`);
}

function decodeCursor(bytes: Buffer): StoredCursor {
  const content = bytes.toString("latin1");
  const text = content.slice(headLength);
  if (content.slice(0, headLength) !== `${magic} ${checksum(text)} `) throw new Error("damaged, or of another version");
  return { ...nothing, ...(JSON.parse(text) as StoredCursor) }; // 0.1.0 wrote no ledgers.
}

function checksum(text: string): string {
  return crc32(Buffer.from(text, "latin1")).toString(16).padStart(8, "0");
}

function isAhead(a: StoredCursor, b: StoredCursor): boolean {
  return a.segment > b.segment || (a.segment === b.segment && a.offset > b.offset);
}
