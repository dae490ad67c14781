/** The disk as the outbox sees it: one flat directory. Tests replace it with a simulated disk. */
import { constants } from "node:fs";
import { mkdir, open, readdir, rename, rm, statfs } from "node:fs/promises";
import { join } from "node:path";

export interface OutboxDisk {
  names(): Promise<readonly string[]>;
  /** `new` creates the file, or empties an existing one. */
  open(name: string, how: "new" | "existing"): Promise<OutboxFile>;
  /** Replaces an existing file of the new name. */
  rename(from: string, to: string): Promise<void>;
  /** Does nothing if the file does not exist. */
  remove(name: string): Promise<void>;
  /** Makes created, renamed and removed files survive a power cut. */
  syncNames(): Promise<void>;
  /** Returns the bytes that an unprivileged process can still write. */
  freeBytes(): Promise<number>;
}

export interface OutboxFile extends AsyncDisposable {
  size(): Promise<number>;
  read(offset: number, length: number): Promise<Buffer>;
  /** Writes all bytes or throws. After an error, any part of them may have been written. */
  write(bytes: Buffer, offset: number): Promise<void>;
  truncate(size: number): Promise<void>;
  /** Makes written bytes survive a power cut. */
  sync(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Writes the beginning of a file so that the bytes survive a power cut. */
export async function writeFile(disk: OutboxDisk, name: string, how: "new" | "existing", bytes: Buffer): Promise<void> {
  await using file = await disk.open(name, how);
  await file.write(bytes, 0);
  await file.sync();
}

export async function openOutboxDirectory(directory: string): Promise<OutboxDisk> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return {
    names: () => readdir(directory),
    open: (name, how) => openFile(join(directory, name), how),
    rename: (from, to) => rename(join(directory, from), join(directory, to)),
    remove: (name) => rm(join(directory, name), { force: true }),
    async syncNames() {
      await using handle = await open(directory, "r");
      await handle.sync();
    },
    async freeBytes() {
      const { bavail, bsize, blocks } = await statfs(directory);
      return blocks === 0 ? Infinity : bavail * bsize; // Some file systems report no sizes.
    },
  };
}

async function openFile(path: string, how: "new" | "existing"): Promise<OutboxFile> {
  const create = how === "new" ? constants.O_CREAT | constants.O_TRUNC : 0;
  const handle = await open(path, constants.O_RDWR | create, 0o600);
  return {
    size: async () => (await handle.stat()).size,
    async read(offset, length) {
      const bytes = Buffer.allocUnsafe(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(bytes, filled, length - filled, offset + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return bytes.subarray(0, filled);
    },
    async write(bytes, offset) {
      let written = 0;
      while (written < bytes.length)
        written += (await handle.write(bytes, written, bytes.length - written, offset + written)).bytesWritten;
    },
    truncate: (size) => handle.truncate(size),
    sync: () => handle.datasync(),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}
