/**
 * The output of a serving engine: a file without a name. Only the engine and this agent have it open, so that no search
 * of the disk finds it.
 */
import type { FileHandle } from "node:fs/promises";

const pieceBytesMax = 64 << 10;
/** The rest of a longer line is ignored. */
const lineBytesMax = 4 << 10;

export class EngineOutput {
  readonly #file: FileHandle;
  readonly #bytesMax: number;
  #position: number;
  #rest = "";
  #reading: Promise<unknown> = Promise.resolve();

  /** Reads from `position` on. Truncates the file once it has read more than `bytesMax`. */
  constructor(file: FileHandle, position: number, bytesMax: number) {
    this.#file = file;
    this.#position = position;
    this.#bytesMax = bytesMax;
  }

  /** Passes new lines to `take`, in order. Calls run one after another. */
  read(take: (lines: readonly string[]) => Promise<void>): Promise<void> {
    const read = this.#reading.then(() => this.#readNew(take));
    this.#reading = read.catch(() => {});
    return read;
  }

  async #readNew(take: (lines: readonly string[]) => Promise<void>): Promise<void> {
    const { size } = await this.#file.stat();
    while (this.#position < size) {
      const buffer = Buffer.alloc(Math.min(pieceBytesMax, size - this.#position));
      const { bytesRead } = await this.#file.read({ buffer, position: this.#position });
      if (bytesRead === 0) break;
      this.#position += bytesRead;
      const lines = (this.#rest + buffer.toString("utf8", 0, bytesRead)).split(/\r?\n/);
      this.#rest = lines.pop()!.slice(0, lineBytesMax);
      await take(lines.map((line) => line.slice(0, lineBytesMax)));
    }
    if (this.#position <= this.#bytesMax) return;
    // Engines append, so they continue at the new end.
    await this.#file.truncate(0);
    this.#position = 0;
  }

  async close(): Promise<void> {
    await this.#reading;
    await this.#file.close();
  }
}
