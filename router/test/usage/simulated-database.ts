/** A usage queue over a simulated database, on virtual time. */
import { expect } from "vitest";
import { sleep } from "@weiche/shared/time/clock.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { makeRecord } from "./usage-records.ts";
import type { Committed } from "../../src/usage/usage-commit.ts";
import type { NodeRecord } from "../../src/usage/usage-rows.ts";
import { UsageQueue, type QueuedRecord } from "../../src/usage/usage-queue.ts";

export const nothing: Committed = { inserted: 0, voided: 0, credits: new Map(), voidedCredits: new Map() };

/** A simulated database: its commits, their duration, and a time in which it is slow or fails. */
export class SimulatedDatabase {
  readonly clock = new VirtualClock();
  readonly committed = new Set<string>();
  commitMs = 30;
  /** Until `untilMs`, a commit takes `commitMs` and then fails if `fails`. */
  unwell = { untilMs: -Infinity, commitMs: 0, fails: false };
  /** When the last commit that began in this time ends. */
  wellAtMs = -Infinity;
  readonly setAside: QueuedRecord[] = [];
  onCommitted: (record: NodeRecord) => unknown = () => {};
  refuses: (record: QueuedRecord) => boolean = () => false;
  #commitsNow = 0;

  readonly commit = async (batch: readonly QueuedRecord[]): Promise<Committed> => {
    if (++this.#commitsNow > 1) throw new Error("two commits at once");
    const { untilMs, commitMs, fails } = this.unwell;
    const isWell = this.clock.now() >= untilMs;
    const ms = isWell ? this.commitMs : commitMs;
    if (!isWell) this.wellAtMs = this.clock.now() + ms;
    if (ms > 0) await sleep(this.clock, ms);
    this.#commitsNow--;
    if (!isWell && fails) throw Object.assign(new Error("no database"), { code: "ECONNRESET" });
    if (batch.some(this.refuses)) throw Object.assign(new Error("bigint out of range"), { code: "22003" });
    const before = this.committed.size;
    this.setAside.push(...batch.filter(({ setAside }) => setAside));
    for (const one of batch) if (!one.setAside) this.committed.add(one.record.requestId);
    for (const one of batch) this.onCommitted(one);
    return { ...nothing, inserted: this.committed.size - before };
  };

  beUnwell(forMs: number, commitMs: number, fails: boolean): void {
    this.unwell = { untilMs: this.clock.now() + forMs, commitMs, fails };
  }

  /** Advances the clock until the database is well and all commits that began before have ended. */
  async recovery(): Promise<void> {
    const leftMs = () => Math.max(this.unwell.untilMs, this.wellAtMs) - this.clock.now();
    while (leftMs() > 0) await this.clock.advanceAsync(leftMs());
  }
}

export function from(node: string, records: readonly UsageRecord[]): NodeRecord[] {
  return records.map((record) => ({ node: asId<NodeId>(node), record }));
}

export function openQueue(database = new SimulatedDatabase()) {
  const failures: boolean[] = [];
  const refused: [string, string, number][] = [];
  const told: { readonly records: number; readonly repeated: number }[] = [];
  const queue = new UsageQueue(database.commit, database.clock, {
    usageCommitted: (batch) => void told.push(batch),
    usageCommitFailed: (_error, isNews) => void failures.push(isNews),
    usageSetAside: (node, reason, records) => void refused.push([node, reason, records]),
  });
  const random = createRandom(1);
  const acknowledged = new Set<string>();
  return {
    ...{ database, clock: database.clock, queue, told, failures, refused, acknowledged },
    /** Sends records as a node does. Fails if they are acknowledged before their commit. */
    send: (count = 1, node = "node-1"): readonly string[] => {
      const records = Array.from({ length: count }, () => makeRecord(random, database.clock.now()));
      const ids = records.map(({ requestId }) => requestId);
      queue.add(from(node, records)).then(
        () => {
          expect(ids.filter((id) => !database.committed.has(id))).toEqual([]);
          for (const id of ids) acknowledged.add(id);
        },
        () => {},
      );
      return ids;
    },
  };
}
