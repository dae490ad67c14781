/**
 * Disk space in reserve for records of running requests. When the disk is full, the reserve file becomes the next
 * segment, because overwriting its blocks needs no space.
 */
import { writeFile, type OutboxDisk, type OutboxFile } from "./outbox-disk.ts";

const name = "reserve";

export class OutboxReserve {
  readonly #disk: OutboxDisk;
  readonly #bytes: number;
  held = false;

  constructor(disk: OutboxDisk, bytes: number) {
    this.#disk = disk;
    this.#bytes = bytes;
  }

  /** Allocates the space if there is room, and leaves nothing behind otherwise. */
  async hold(): Promise<void> {
    if (this.held) return;
    try {
      if (!(await this.#isThere())) await this.#allocate();
      this.held = true;
    } catch {
      await this.#disk.remove(`${name}.new`).catch(() => {});
    }
  }

  /** Renames the reserve file and opens it for the caller. */
  async take(newName: string): Promise<OutboxFile> {
    this.held = false;
    await this.#disk.rename(name, newName);
    return this.#disk.open(newName, "existing");
  }

  async #isThere(): Promise<boolean> {
    if (!(await this.#disk.names()).includes(name)) return false;
    await using file = await this.#disk.open(name, "existing");
    return (await file.size()) === this.#bytes;
  }

  async #allocate(): Promise<void> {
    await writeFile(this.#disk, `${name}.new`, "new", Buffer.alloc(this.#bytes));
    await this.#disk.rename(`${name}.new`, name);
  }
}
