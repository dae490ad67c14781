/**
 * Queues usage records for the database. Commits batches of up to 500 records, gathered for at most 20 ms, one at a time.
 * A record stays in the queue until it is committed, however long the database is away. A repetition waits for the same
 * commit, so that repetitions do not grow the queue. Records to set aside are queued too.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { NodeId } from "@weiche/shared/ids.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";
import { isDataError } from "../db/failures.ts";
import type { Committed, CreditsByModel } from "./usage-commit.ts";
import type { SetAside, SetAsideReason } from "./usage-check.ts";
import type { NodeRecord } from "./usage-rows.ts";

/** `repeated`: records that were committed before. `voided`: attempts that were billed before and are void now. */
export interface CommittedBatch {
  readonly records: number;
  readonly repeated: number;
  readonly voided: number;
  /** Credits of new records, and credits of attempts that became void. */
  readonly credits: CreditsByModel;
  readonly voidedCredits: CreditsByModel;
  readonly durationMs: number;
}

export interface UsageQueueEvents {
  usageCommitted(batch: CommittedBatch): void;
  /** Records were set aside: acknowledged but not billed. */
  usageSetAside(node: NodeId, reason: SetAsideReason, records: number): void;
  /** A commit failed and will be tried again. `isNews`: the commit before it succeeded. */
  usageCommitFailed(error: unknown, isNews: boolean): void;
}

/** Measured: twice as many are no faster, and block the event loop twice as long. */
const batchRecordsMax = 500;
const gatherMs = 20;
const retryMs = 250;
/** About 50 MB. Nodes keep refused records and send them again. */
const waitingMax = 50_000;

/** A call of `add` that waits for `open` more records. */
interface Sender {
  open: number;
  readonly committed: () => void;
  readonly failed: (error: unknown) => void;
}

export interface QueuedRecord extends NodeRecord {
  /** If set, the record is set aside. */
  readonly setAside?: SetAside;
}

interface Waiting extends QueuedRecord {
  readonly senders: Sender[];
}

export class UsageQueue implements AsyncDisposable {
  readonly #commit: (batch: readonly QueuedRecord[]) => Promise<Committed>;
  readonly #clock: Clock;
  readonly #events: UsageQueueEvents;
  readonly #commits: SingleFlight;
  /** Records by `keyOf`, in the order of arrival. */
  readonly #waiting = new TransientMap<string, Waiting>();
  #batchMax = batchRecordsMax;
  #isFailing = false;
  #isClosed = false;

  /** `commit` must commit a whole batch or nothing. */
  constructor(commit: (batch: readonly QueuedRecord[]) => Promise<Committed>, clock: Clock, events: UsageQueueEvents) {
    this.#commit = commit;
    this.#clock = clock;
    this.#events = events;
    this.#commits = new SingleFlight(clock, () => this.#commitNext(), retryMs);
  }

  /** The number of records that are not committed yet. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves once all records are committed. Rejects if the queue is full, or closes without a database. */
  add(records: readonly QueuedRecord[]): Promise<void> {
    const { promise, resolve: committed, reject: failed } = Promise.withResolvers<void>();
    if (records.length === 0) committed();
    else if (this.#isClosed) failed(new Error("the ledger is closed"));
    else if (this.#waiting.size + records.length > waitingMax && !this.#mustTake(records))
      failed(new Error(`the queue is full: ${this.#waiting.size} usage records wait for the database`));
    else this.#addAll(records, { open: records.length, committed, failed });
    return promise;
  }

  /** Tries once more to commit all waiting records, and rejects the promises of records that fail again. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#commits[Symbol.asyncDispose]();
    try {
      while (this.#waiting.size > 0) await this.#commitNext();
    } catch (error) {
      for (const { senders } of this.#waiting.values()) for (const { failed } of senders) failed(error);
      this.#waiting.clear();
    }
  }

  #addAll(records: readonly QueuedRecord[], sender: Sender): void {
    for (const one of records) {
      const key = keyOf(one);
      const there = this.#waiting.get(key);
      if (there) there.senders.push(sender);
      else this.#waiting.set(key, { ...one, senders: [sender] });
    }
    this.#commitSoon();
  }

  /** Returns whether a full queue must accept the records: repetitions need no room, and voids are not sent again. */
  #mustTake(records: readonly QueuedRecord[]): boolean {
    return records.every((one) => isVoid(one) || this.#waiting.has(keyOf(one)));
  }

  #commitSoon(): void {
    this.#commits.wish(this.#waiting.size >= this.#batchMax ? 0 : gatherMs);
  }

  /** Commits the next batch. If it fails, it rejects; the batch stays queued, and the next batch has half the size. */
  async #commitNext(): Promise<void> {
    const batch = [...this.#waiting.values().take(this.#batchMax)];
    if (batch.length === 0) return;
    try {
      await this.#commitAll(batch);
    } catch (error) {
      // The batch may be too large for the database's timeout.
      this.#batchMax = Math.max(1, Math.floor(this.#batchMax / 2));
      this.#events.usageCommitFailed(error, !this.#isFailing);
      this.#isFailing = true;
      throw error;
    }
    this.#batchMax = Math.min(batchRecordsMax, this.#batchMax * 2);
    this.#isFailing = false;
    if (this.#waiting.size > 0) this.#commitSoon();
  }

  /** Commits a batch. If the database refuses its data, it is halved repeatedly until the faulty record is alone. */
  async #commitAll(batch: readonly Waiting[]): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    let committed: Committed;
    try {
      committed = await this.#commit(batch);
    } catch (error) {
      if (!isDataError(error)) throw error;
      if (batch.length === 1) return this.#setAside(batch[0]!, error);
      const half = batch.length >> 1;
      await this.#commitAll(batch.slice(0, half));
      return this.#commitAll(batch.slice(half));
    }
    const durationMs = this.#clock.monotonicMs() - startMs;
    const records = sendersOf(batch.filter(({ record, setAside }) => !setAside && record.outcome !== "void"));
    const { inserted, ...sums } = committed;
    this.#events.usageCommitted({ records, repeated: records - inserted, ...sums, durationMs });
    this.#tellSetAside(batch);
    for (const one of batch) this.#settle(one);
  }

  /** Queues a refused record again to be set aside. */
  #setAside(one: Waiting, error: unknown): void {
    this.#events.usageCommitFailed(error, true);
    if (one.setAside) return this.#settle(one); // the database refused even to set it aside
    this.#waiting.delete(keyOf(one));
    const aside: Waiting = { ...one, setAside: { reason: "database", detail: (error as Error).message } };
    const key = keyOf(aside);
    const there = this.#waiting.get(key);
    if (there) there.senders.push(...one.senders);
    else this.#waiting.set(key, aside);
  }

  #settle(one: Waiting): void {
    this.#waiting.delete(keyOf(one));
    for (const sender of one.senders) if (--sender.open === 0) sender.committed();
  }

  #tellSetAside(batch: readonly Waiting[]): void {
    const byNode = Map.groupBy(
      batch.filter(({ setAside }) => setAside),
      ({ node, setAside }) => `${setAside!.reason} ${node}`,
    );
    for (const aside of byNode.values())
      this.#events.usageSetAside(aside[0]!.node, aside[0]!.setAside!.reason, aside.length);
  }
}

function sendersOf(batch: readonly Waiting[]): number {
  return batch.reduce((sum, { senders }) => sum + senders.length, 0);
}

/** Returns the key of an entry. A void, a record and a record to set aside of one attempt have different keys. */
function keyOf({ node, record, setAside }: QueuedRecord): string {
  return `${record.requestId} ${record.attempt} ${isVoid({ node, record }) ? "void" : node} ${setAside?.reason ?? ""}`;
}

function isVoid({ record }: NodeRecord): boolean {
  return record.outcome === "void";
}
