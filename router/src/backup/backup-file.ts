/**
 * The format of a backup file: one Zstandard stream, written and read sequentially.
 *
 *   "weiche-backup 1\n"
 *   header                    JSON in one line: `BackupHeader`
 *   per table of the header   its rows as PostgreSQL's `COPY` writes them, in blocks: length as u32 (big-endian), bytes.
 *                             A block of length 0 ends the table
 *   trailer                   JSON in one line: rows per table, and the SHA-256 of everything before it
 *
 * A file without a trailer, or with a wrong checksum, is incomplete or damaged, and is refused.
 */
import { createHash, type Hash } from "node:crypto";
import { StartError } from "@weiche/shared/files/start-error.ts";

export interface BackupHeader {
  /** The version of Weiche that wrote the backup. */
  readonly version: string;
  /** ISO 8601, by the database's clock. The backup contains everything committed before. */
  readonly at: string;
  /** Names of the migrations of its schema, in order. */
  readonly migrations: readonly string[];
  /** In an order in which every table follows the tables that it references. */
  readonly tables: readonly BackupTable[];
}

export interface BackupTable {
  readonly name: string;
  readonly columns: readonly string[];
}

interface BackupTrailer {
  readonly rows: Readonly<Record<string, number>>;
  readonly sha256: string;
}

const magic = "weiche-backup 1\n";
const lengthBytes = 4;
/** Far more than needed: the header of 400 days has about 40 KB. */
const lineBytesMax = 16 << 20;
const blockBytesMax = 1 << 30;

/** Yields the uncompressed bytes of a backup. `rowsOf` yields the bytes of a table and returns its number of rows. */
export async function* writeBackup(
  header: BackupHeader,
  rowsOf: (table: BackupTable) => AsyncGenerator<Buffer, number>,
): AsyncGenerator<Buffer> {
  const checksum = createHash("sha256");
  const said = (bytes: Buffer) => (checksum.update(bytes), bytes);
  yield said(Buffer.from(`${magic}${JSON.stringify(header)}\n`));
  const rows: Record<string, number> = {};
  for (const table of header.tables) {
    const copied = rowsOf(table);
    for (let next = await copied.next(); ; next = await copied.next()) {
      if (next.done) {
        rows[table.name] = next.value;
        break;
      }
      if (next.value.length === 0) continue;
      yield said(lengthOf(next.value.length));
      yield said(next.value);
    }
    yield said(lengthOf(0));
  }
  yield Buffer.from(`${JSON.stringify({ rows, sha256: checksum.digest("hex") } satisfies BackupTrailer)}\n`);
}

function lengthOf(bytes: number): Buffer {
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(bytes);
  return length;
}

/** Reads a backup sequentially: call `header`, then `rows` for each table in order, then `trailer`. */
export class BackupReader {
  readonly #source: AsyncIterator<Buffer>;
  readonly #checksum: Hash = createHash("sha256");
  #buffered: Buffer = Buffer.alloc(0);

  /** `source` yields the uncompressed bytes. */
  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async header(): Promise<BackupHeader> {
    const start = await this.#line();
    if (`${start}\n` !== magic) throw new StartError("the file is not a backup of Weiche, or has a newer format");
    return JSON.parse(await this.#line()) as BackupHeader;
  }

  /** Yields the rows of the next table. */
  async *rows(): AsyncGenerator<Buffer> {
    for (;;) {
      const length = (await this.#take(lengthBytes)).readUInt32BE();
      if (length === 0) return;
      if (length > blockBytesMax) throw damaged();
      yield await this.#take(length);
    }
  }

  /** Throws a `StartError` if the checksum is wrong. */
  async trailer(): Promise<BackupTrailer> {
    const expected = this.#checksum.copy().digest("hex");
    const trailer = JSON.parse(await this.#line()) as BackupTrailer;
    if (trailer.sha256 !== expected) throw damaged();
    return trailer;
  }

  async #line(): Promise<string> {
    let end: number;
    while ((end = this.#buffered.indexOf(10)) < 0) {
      if (this.#buffered.length > lineBytesMax) throw damaged();
      await this.#more();
    }
    const line = await this.#take(end + 1);
    return line.toString("utf8", 0, end);
  }

  async #take(length: number): Promise<Buffer> {
    while (this.#buffered.length < length) await this.#more();
    const taken = this.#buffered.subarray(0, length);
    this.#buffered = this.#buffered.subarray(length);
    this.#checksum.update(taken);
    return taken;
  }

  async #more(): Promise<void> {
    const { value, done } = await this.#source.next();
    if (done) throw new StartError("the backup is incomplete: its end is missing");
    this.#buffered = Buffer.concat([this.#buffered, value]);
  }
}

function damaged(): StartError {
  return new StartError("the backup is damaged: its checksum is wrong");
}
