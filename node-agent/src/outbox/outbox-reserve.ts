/**
 * Disk space that is reserved for the records of running requests. When a write finds the disk full, the reserve file
 * becomes the next segment: its blocks are allocated, so overwriting them needs no space.
 */
import type { OutboxDisk, OutboxFile } from "./outbox-disk.ts";

const name = "reserve";

export class OutboxReserve {
  readonly #disk: OutboxDisk;
  readonly #bytes: number;
  #held = false;

  constructor(disk: OutboxDisk, bytes: number) {
    this.#disk = disk;
    this.#bytes = bytes;
  }

  get held(): boolean {
    return this.#held;
  }

  /** Allocates the space, if there is room. Leaves nothing behind if there is not. */
  async hold(): Promise<void> {
    if (this.#held) return;
    try {
      if (!(await this.#isThere())) await this.#allocate();
      this.#held = true;
    } catch {
      await this.#disk.remove(`${name}.new`).catch(() => {});
    }
  }

  /** Renames the reserve file, and opens it for the caller. */
  async take(newName: string): Promise<OutboxFile> {
    this.#held = false;
    await this.#disk.rename(name, newName);
    return this.#disk.open(newName, "existing");
  }

  async #isThere(): Promise<boolean> {
    if (!(await this.#disk.names()).includes(name)) return false;
    const file = await this.#disk.open(name, "existing");
    try {
      return (await file.size()) === this.#bytes;
    } finally {
      await file.close();
    }
  }

  async #allocate(): Promise<void> {
    const file = await this.#disk.open(`${name}.new`, "new");
    try {
      await file.write(Buffer.alloc(this.#bytes), 0);
      await file.sync();
    } finally {
      await file.close();
    }
    await this.#disk.rename(`${name}.new`, name);
  }
}
