/** A router as usage delivery sees it, with a simulated database. */
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import type { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageDelivery } from "../../src/outbox/delivery.ts";
import type { UsageChannel } from "../../src/outbox/usage-channel.ts";
import { numberOf } from "./usage-records.ts";

/** The database of all routers. It stores each record once, however often it is delivered. */
export class Database {
  readonly committed = new Set<number>();
  readonly arrivals: number[] = [];
}

/** A router at the other end of a link. `answer` decides about each batch. By default it is committed at once. */
export class SimulatedRouter implements UsageChannel {
  readonly routerId: string;
  isLeaving = false;
  /** Commits and acknowledges nothing. */
  isSilent = false;
  readonly batches: { readonly batchId: bigint; readonly numbers: readonly number[]; readonly atMs: number }[] = [];
  readonly #database: Database;
  readonly #clock: VirtualClock;
  answer: (commit: () => void, batchId: bigint) => void;

  constructor(routerId: string, database: Database, clock: VirtualClock, acknowledge: UsageDelivery["acknowledged"]) {
    this.routerId = routerId;
    this.answer = (commit, batchId) => {
      commit();
      acknowledge(routerId, batchId);
    };
    this.#database = database;
    this.#clock = clock;
  }

  send(batchId: bigint, records: readonly UsageRecord[]): void {
    const numbers = records.map(numberOf);
    this.batches.push({ batchId, numbers, atMs: this.#clock.now() });
    const commit = () => {
      this.#database.arrivals.push(...numbers);
      for (const number of numbers) this.#database.committed.add(number);
    };
    this.#clock.after(5, () => {
      if (!this.isSilent) this.answer(commit, batchId);
    });
  }
}
