/** Bills usage records: checks and queues each record, and acknowledges it only after its commit. */
import type { Pool } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { uuidv7TimeMs, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { Attempt, BillingIdentity, UsageRecord } from "@weiche/shared/usage-record.ts";
import { retryConflicts, type Database } from "../db/database.ts";
import type { Grants } from "./grants.ts";
import { faultOf } from "./usage-check.ts";
import { commitUsage, type Committed } from "./usage-commit.ts";
import { free } from "./usage-voids.ts";
import { forgetRefusals } from "./refusal-counts.ts";
import { makeUsageDays, oldestKeptMs, rollUsageDays } from "./usage-days.ts";
import { UsageQueue, type QueuedRecord, type UsageQueueEvents } from "./usage-queue.ts";
import {
  forgetSetAside,
  storeSetAside,
  unreadableRecord,
  type SetAsideRecord,
  type UnreadableRecord,
} from "./records-set-aside.ts";

export type UsageLedger = Awaited<ReturnType<typeof createUsageLedger>>;

export interface VoidAttempt extends Attempt, BillingIdentity {
  readonly node: NodeId;
  readonly model: ModelId;
}

interface UsageLedgerOptions {
  /** Checks that a router of this database sent the record's request to the node. */
  readonly grants: Grants;
  /** For how many days records are kept. Totals are kept for ever. */
  readonly keepDays?: number;
  /** Returns whether only a model's input is billed, whatever output a node reports. */
  readonly makesEmbeddings?: (model: ModelId) => boolean;
}

/** Resolves once the partition for today's records exists. */
export async function createUsageLedger(
  database: Database,
  clock: Clock,
  events: UsageQueueEvents,
  { grants, keepDays = 400, makesEmbeddings = () => false }: UsageLedgerOptions,
) {
  const { pool } = database;
  await rollUsageDays(pool, clock.now(), keepDays);
  const queue = new UsageQueue(
    (batch) => retryConflicts(() => insert(database.usagePool, batch, clock.now())),
    clock,
    events,
  );
  return {
    /**
     * Resolves once the records are committed, each at most once per request id and attempt, in one transaction with the
     * totals. Waits however long the database is away. Rejects if the queue is full or the ledger is closed; then the
     * agent sends the records again. Records that fail the checks, and `unreadable` ones, are set aside instead.
     */
    record(node: NodeId, records: readonly UsageRecord[], unreadable: readonly UnreadableRecord[] = []): Promise<void> {
      const nowMs = clock.now();
      const oldestMs = oldestKeptMs(nowMs, keepDays);
      const checked = records.map((record): QueuedRecord => {
        const reason = faultOf(record, oldestMs, nowMs) ?? grants.faultOf(node, record);
        if (reason !== undefined) return { node, record, setAside: { reason } };
        return { node, record: makesEmbeddings(record.model) ? { ...record, completionTokens: 0 } : record };
      });
      return queue.add([...checked, ...unreadable.map((one) => unreadableRecord(node, one))]);
    },
    /** Returns the number of records that are not committed yet. */
    waiting: () => queue.waiting,
    /** Declares attempts void, with or without a record. Resolves once the voids are committed. */
    declareVoid: (attempts: readonly VoidAttempt[]): Promise<void> =>
      queue.add(attempts.map(({ node, ...attempt }) => ({ node, record: { ...attempt, ...free } }))),
    /** Makes partitions for the next days, and deletes records and refusal counts after their retention. */
    async rollDays(): Promise<void> {
      const oldestMs = oldestKeptMs(clock.now(), keepDays);
      await rollUsageDays(pool, clock.now(), keepDays);
      await forgetSetAside(pool, oldestMs);
      await forgetRefusals(pool, oldestMs);
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/** Sets faulty records aside and commits the others. Makes missing partitions. */
async function insert(pool: Pool, batch: readonly QueuedRecord[], nowMs: number): Promise<Committed> {
  const aside = batch.filter((one): one is SetAsideRecord => one.setAside !== undefined);
  if (aside.length > 0) await storeSetAside(pool, aside, nowMs);
  const records = aside.length > 0 ? batch.filter(({ setAside }) => !setAside) : batch;
  try {
    return await commitUsage(pool, records);
  } catch (error) {
    if (!isMissingDay(error)) throw error;
    await makeUsageDays(
      pool,
      records.map(({ record }) => uuidv7TimeMs(record.requestId)),
    );
    return commitUsage(pool, records);
  }
}

/** Returns whether a partition is missing: PostgreSQL reports the code of a failed check, but names no constraint. */
function isMissingDay(error: unknown): boolean {
  const { code, constraint } = error as { code?: string; constraint?: string };
  return code === "23514" && constraint === undefined;
}
