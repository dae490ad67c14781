/**
 * The writing half of the outbox: append → write → sync. Concurrent appends are written together, and synced together
 * within 10 ms. Frames that cannot be written wait. Frames that cannot be synced are written again.
 */
import { setImmediate } from "node:timers/promises";
import { sleep, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import type { OutboxDisk, OutboxFile } from "./outbox-disk.ts";
import type { Segment } from "./outbox-recovery.ts";
import type { OutboxReserve } from "./outbox-reserve.ts";
import { encodeHeader, headerBytes, segmentName } from "./segment.ts";

const syncMs = 10;
const retryMs = 200;
const groupBytesMax = 256 << 10;

interface WriterOptions {
  readonly disk: OutboxDisk;
  readonly clock: Clock;
  readonly reserve: OutboxReserve;
  /** Sorted by number. The writer appends. */
  readonly segments: Segment[];
  readonly nextNumber: number;
  readonly segmentBytesMax: number;
  readonly onWritten: () => void;
  readonly onFailed: (code: string) => void;
}

interface Pending {
  readonly frame: Buffer;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Active {
  readonly segment: Segment;
  readonly file: OutboxFile;
  /** Frames that are written but not synced. */
  unsynced: Pending[];
  /** Whether its name survives a power cut. */
  named: boolean;
  /** A sync failed. The content on disk is unknown, so nothing more is written to it. */
  suspect: boolean;
}

export class OutboxWriter {
  readonly #options: WriterOptions;
  readonly #closing = new AbortController();
  #nextNumber: number;
  #queue: Pending[] = [];
  #writing: Promise<void> | undefined;
  #active: Active | undefined;
  #syncTimer: Timer | undefined;
  #syncing: Promise<void> = Promise.resolve();
  /** Whether a write failed and none has succeeded since. */
  failing = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#nextNumber = options.nextNumber;
  }

  get active(): Segment | undefined {
    return this.#active?.segment;
  }

  /** Resolves when the frame is in a file. Waits for room, and rejects only when the writer closes. */
  write(frame: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ frame, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Tries once more to write waiting frames, and rejects the rest. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the usage outbox is closed"));
    await this.#writing;
    await this.#retire();
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0) {
      await setImmediate(); // One write for all records of a turn costs the same as for one record.
      const group = this.#takeGroup();
      try {
        await this.#writeGroup(group);
        for (const { resolve } of group) resolve();
        this.#options.onWritten();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#writing = undefined;
  }

  #takeGroup(): Pending[] {
    let bytes = 0;
    const over = this.#queue.findIndex(({ frame }) => (bytes += frame.length) > groupBytesMax);
    return this.#queue.splice(0, over < 0 ? this.#queue.length : Math.max(1, over));
  }

  async #writeGroup(group: readonly Pending[]): Promise<void> {
    const { clock, disk, segmentBytesMax } = this.#options;
    const bytes = Buffer.concat(group.map(({ frame }) => frame));
    for (;;) {
      if (this.#active && (this.#active.suspect || this.#active.segment.bytes >= segmentBytesMax)) await this.#retire();
      try {
        const active = (this.#active ??= await this.#begin((name) => disk.open(name, "new")));
        await active.file.write(bytes, active.segment.bytes);
        active.segment.bytes += bytes.length;
        active.segment.records += group.length;
        active.unsynced.push(...group);
        this.#syncTimer ??= clock.after(syncMs, () => this.#startSync(active));
        this.failing = false;
        return;
      } catch (error) {
        await this.#writeFailed(error);
      }
    }
  }

  /** After any error, ends the segment before the failed frames and continues in the reserve. */
  async #writeFailed(error: unknown): Promise<void> {
    const { clock, onFailed, reserve } = this.#options;
    this.failing = true;
    await this.#retire();
    const held = reserve.held;
    if (held) this.#active = await this.#begin((name) => reserve.take(name)).catch(() => undefined);
    onFailed((error as NodeJS.ErrnoException).code ?? "unknown");
    if (!held) await sleep(clock, retryMs, this.#closing.signal);
  }

  async #begin(open: (name: string) => Promise<OutboxFile>): Promise<Active> {
    const { disk, segments } = this.#options;
    const segment: Segment = { number: this.#nextNumber++, bytes: headerBytes, records: 0 };
    const file = await open(segmentName(segment.number));
    try {
      await file.write(encodeHeader(segment.number), 0);
    } catch (error) {
      await file[Symbol.asyncDispose]().catch(() => {});
      await disk.remove(segmentName(segment.number)).catch(() => {});
      throw error;
    }
    segments.push(segment);
    return { segment, file, unsynced: [], named: false, suspect: false };
  }

  /** Ends the active segment after its last complete record. */
  async #retire(): Promise<void> {
    const active = this.#active;
    if (!active) return;
    this.#active = undefined;
    this.#syncTimer?.cancel();
    this.#syncTimer = undefined;
    await this.#syncing;
    await active.file.truncate(active.segment.bytes).catch(() => {}); // If this fails, the next recovery does it.
    await this.#sync(active);
    await active.file[Symbol.asyncDispose]().catch(() => {});
    if (active.segment.records > 0) return;
    const { disk, segments } = this.#options;
    segments.splice(segments.indexOf(active.segment), 1);
    await disk.remove(segmentName(active.segment.number)).catch(() => {});
  }

  #startSync(active: Active): void {
    this.#syncTimer = undefined;
    this.#syncing = this.#syncing.then(() => this.#sync(active));
  }

  async #sync(active: Active): Promise<void> {
    const { unsynced } = active;
    active.unsynced = [];
    if (unsynced.length === 0) return;
    try {
      if (active.suspect) throw new Error("an earlier sync failed");
      await active.file.sync();
      if (!active.named) await this.#options.disk.syncNames();
      active.named = true;
    } catch {
      // The system may have dropped pages that it could not write, so these frames go to another segment as well.
      active.suspect = true;
      if (this.#closing.signal.aborted) return;
      this.#queue.unshift(...unsynced.map(({ frame }) => ({ frame, resolve: () => {}, reject: () => {} })));
      this.#writing ??= this.#writeAll();
    }
  }
}
