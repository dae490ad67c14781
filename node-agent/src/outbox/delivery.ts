/**
 * Delivers usage records in order, one batch at a time, over one live link. A batch that is not acknowledged in time
 * goes over the next link, because routers share a database that ignores duplicates.
 */
import { within, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";
import { batchRecordsMax } from "@weiche/shared/wire/link-bounds.ts";
import type { Batch, Outbox } from "./outbox.ts";
import type { Position } from "./outbox-recovery.ts";
import type { UsageChannel } from "./usage-channel.ts";

export interface DeliveryEvents {
  usageDelivered(records: number): void;
  /** A router did not acknowledge in time. The batch goes to the next router. */
  usageNotAcknowledged(routerId: string): void;
  /** The routers' database changed or lost commits. This many records are sent, most of them again. */
  usageSentAgain(records: number): void;
  /** Records could not be read from disk. The read is retried. */
  usageUnreadable(code: string): void;
}

/** The delay in which records gather for one batch. Ten times the delay saves 5 % of the work for a JSON request. */
const gatherMs = 200;
const acknowledgeMsMax = 10_000;
const retryMs = 1_000;
/** The number of sent batches that are remembered, because an earlier sending may still be acknowledged. */
const sentMax = 16;

interface Sent {
  readonly routerId: string;
  readonly end: Position;
  readonly records: number;
}

export class UsageDelivery implements Disposable {
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  readonly #events: DeliveryEvents;
  /** The live links. The first whose router is not stopping is in use. */
  #links: UsageChannel[] = [];
  readonly #sent = new TransientMap<bigint, Sent>();
  readonly #sending: SingleFlight;
  #lastBatchId = 0n;
  #awaited: { readonly routerId: string; readonly timer: Timer } | undefined;
  #onFlushed: (() => void) | undefined;

  constructor(outbox: Outbox, clock: Clock, events: DeliveryEvents) {
    this.#outbox = outbox;
    this.#clock = clock;
    this.#events = events;
    this.#sending = new SingleFlight(clock, () => this.#sendNext(), retryMs);
    outbox.onAppend(() => this.#soon(gatherMs));
  }

  /** The router has sent its welcome, so batches may be sent to it from now on. */
  linkUp(channel: UsageChannel): void {
    this.#links = [...this.#links.filter(({ routerId }) => routerId !== channel.routerId), channel];
    this.#soon(0);
  }

  /** The router has committed the batch. */
  acknowledged(routerId: string, batchId: bigint): void {
    const sent = this.#sent.get(batchId);
    if (!sent || sent.routerId !== routerId) return; // This batch was not sent to this router.
    this.#sent.delete(batchId);
    if (!this.#outbox.acknowledge(sent.end)) return; // Another router has already acknowledged it.
    this.#events.usageDelivered(sent.records);
    // This also holds for an earlier sending of the awaited batch, because the cursor has passed its beginning.
    this.#stopWaiting();
    this.#checkFlushed();
    this.#soon(this.#outbox.depth >= batchRecordsMax ? 0 : gatherMs);
  }

  /** Call this once per `linkUp`, when the link is lost. Its unacknowledged batch is sent over another link. */
  linkDown(routerId: string): void {
    this.#links = this.#links.filter((link) => link.routerId !== routerId);
    this.#checkFlushed();
    if (this.#awaited?.routerId !== routerId) return;
    this.#stopWaiting();
    this.#soon(0);
  }

  /**
   * `ledger`: identifies the state of the routers' database. A new state may have lost commits, so every held record is
   * sent again. Undefined if the router does not send it.
   */
  committedTo(ledger: string | undefined): void {
    if (ledger === undefined || !this.#outbox.committedTo(ledger)) return;
    this.#sent.clear();
    this.#stopWaiting();
    this.#events.usageSentAgain(this.#outbox.depth);
    this.#soon(0);
  }

  /** Sends at once from now on. Resolves when all records are committed, when no link is left, or after `msMax`. */
  async flush(msMax: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onFlushed = resolve;
    this.#checkFlushed();
    this.#soon(0);
    await within(this.#clock, msMax, promise);
    this.#onFlushed = undefined;
  }

  [Symbol.dispose](): void {
    void this.#sending[Symbol.asyncDispose]();
    this.#stopWaiting();
  }

  #checkFlushed(): void {
    if (this.#outbox.depth === 0 || this.#links.length === 0) this.#onFlushed?.();
  }

  #soon(whenGatheredMs: number): void {
    if (this.#awaited || this.#links.length === 0) return;
    this.#sending.wish(this.#onFlushed ? 0 : whenGatheredMs);
  }

  async #sendNext(): Promise<void> {
    if (this.#awaited || this.#links.length === 0) return;
    const { start, records, end } = await this.#read();
    const link = this.#links.find(({ isLeaving }) => !isLeaving) ?? this.#links[0];
    if (this.#sending.isClosed || this.#awaited || !link) return;
    if (start !== this.#outbox.cursor) return this.#soon(0);
    if (records.length === 0) {
      if (this.#outbox.acknowledge(end)) this.#soon(0); // Nothing here is readable, but later records may be.
      return;
    }
    const batchId = ++this.#lastBatchId;
    this.#remember(batchId, { routerId: link.routerId, end, records: records.length });
    const timer = this.#clock.after(acknowledgeMsMax, () => this.#tooLate(link));
    this.#awaited = { routerId: link.routerId, timer };
    link.send(
      batchId,
      records.map(({ record }) => record),
    );
  }

  async #read(): Promise<Batch> {
    try {
      return await this.#outbox.read(batchRecordsMax);
    } catch (error) {
      this.#events.usageUnreadable((error as NodeJS.ErrnoException).code ?? "unknown");
      throw error;
    }
  }

  #remember(batchId: bigint, sent: Sent): void {
    this.#sent.set(batchId, sent);
    if (this.#sent.size > sentMax) this.#sent.delete(this.#sent.keys().next().value!);
  }

  #tooLate(link: UsageChannel): void {
    this.#awaited = undefined;
    this.#events.usageNotAcknowledged(link.routerId);
    this.#links = [...this.#links.filter((each) => each !== link), ...this.#links.filter((each) => each === link)];
    this.#soon(0);
  }

  #stopWaiting(): void {
    this.#awaited?.timer.cancel();
    this.#awaited = undefined;
  }
}
