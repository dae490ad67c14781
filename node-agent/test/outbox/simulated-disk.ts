/** A disk in memory that fails on demand, fills up, and at a power cut forgets what was not synced. */
import type { OutboxDisk, OutboxFile } from "../../src/outbox/outbox-disk.ts";

interface Inode {
  content: Buffer;
  /** The bytes that a power cut leaves. */
  synced: Buffer;
}

export type DiskCall =
  | "names"
  | "open"
  | "rename"
  | "remove"
  | "syncNames"
  | "size"
  | "read"
  | "write"
  | "truncate"
  | "sync"
  | "close";

export class SimulatedDisk implements OutboxDisk {
  readonly #names: Map<string, Inode>;
  #syncedNames: Map<string, Inode>;
  capacityBytes = Infinity;
  /** From now on no call of a file returns. */
  hangs = false;
  /** The promise that a call waits for. */
  delays: (call: DiskCall) => Promise<unknown> = () => Promise.resolve();
  readonly counts: Partial<Record<DiskCall, number>> = {};
  calls = 0;
  /** The error code with which this call fails, if it does. */
  fails: (call: DiskCall, count: number, name: string) => string | undefined = () => undefined;

  constructor(names: Iterable<readonly [string, Buffer]> = []) {
    this.#names = new Map([...names].map(([name, content]) => [name, { content, synced: content }]));
    this.#syncedNames = new Map(this.#names);
  }

  /** Returns the disk as another process finds it after the agent was killed, with everything that was written. */
  afterKill(): SimulatedDisk {
    return new SimulatedDisk([...this.#names].map(([name, { content }]) => [name, Buffer.from(content)]));
  }

  /** Returns the disk after a power cut, in the worst case. */
  afterPowerCut(): SimulatedDisk {
    return new SimulatedDisk([...this.#syncedNames].map(([name, { synced }]) => [name, Buffer.from(synced)]));
  }

  content(name: string): Buffer {
    return this.#names.get(name)!.content;
  }

  put(name: string, content: Buffer): void {
    this.#names.set(name, { content, synced: content });
  }

  list(): string[] {
    return [...this.#names.keys()];
  }

  get usedBytes(): number {
    return [...this.#names.values()].reduce((sum, { content }) => sum + content.length, 0);
  }

  async names(): Promise<readonly string[]> {
    await this.#call("names");
    return this.list();
  }

  async open(name: string, how: "new" | "existing"): Promise<OutboxFile> {
    await this.#call("open", name);
    const inode = this.#names.get(name) ?? { content: Buffer.alloc(0), synced: Buffer.alloc(0) };
    if (how === "existing" && !this.#names.has(name)) throw failure("ENOENT");
    if (how === "new") inode.content = Buffer.alloc(0);
    this.#names.set(name, inode);
    return this.#file(inode, name);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#call("rename", from);
    const inode = this.#names.get(from);
    if (!inode) throw failure("ENOENT");
    this.#names.delete(from);
    this.#names.set(to, inode);
  }

  async remove(name: string): Promise<void> {
    await this.#call("remove", name);
    this.#names.delete(name);
  }

  async syncNames(): Promise<void> {
    await this.#call("syncNames");
    this.#syncedNames = new Map(this.#names);
  }

  async freeBytes(): Promise<number> {
    return this.capacityBytes - this.usedBytes;
  }

  #file(inode: Inode, name: string): OutboxFile {
    return {
      size: async () => {
        await this.#call("size", name);
        return inode.content.length;
      },
      read: async (offset, length) => {
        await this.#call("read", name);
        return Buffer.from(inode.content.subarray(offset, offset + length));
      },
      write: async (bytes, offset) => {
        const room = this.capacityBytes - this.usedBytes + Math.max(0, inode.content.length - offset);
        const failed = await this.#call("write", name).then(
          () => undefined,
          (error: Error) => error,
        );
        const fits = Math.max(0, failed ? bytes.length >> 1 : Math.min(bytes.length, room));
        const grown = Buffer.alloc(Math.max(inode.content.length, offset + fits));
        inode.content.copy(grown);
        bytes.copy(grown, offset, 0, fits);
        inode.content = grown;
        if (failed) throw failed;
        if (fits < bytes.length) throw failure("ENOSPC");
      },
      truncate: async (size) => {
        await this.#call("truncate", name);
        inode.content = Buffer.from(inode.content.subarray(0, size));
      },
      sync: async () => {
        await this.#call("sync", name);
        inode.synced = Buffer.from(inode.content);
      },
      [Symbol.asyncDispose]: () => this.#call("close", name),
    };
  }

  async #call(call: DiskCall, name = ""): Promise<void> {
    this.counts[call] = (this.counts[call] ?? 0) + 1;
    const code = this.fails(call, ++this.calls, name);
    await (this.hangs ? new Promise(() => {}) : this.delays(call));
    if (code !== undefined) throw failure(code);
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: simulated`), { code });
}
