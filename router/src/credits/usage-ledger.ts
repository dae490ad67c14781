/**
 * Where usage records become money. Callers' records are gathered into batches (up to 500, or what came within 20 ms),
 * one commit at a time; a caller hears of its records only after the commit.
 */
import { every, type Clock, type Timer } from "@weiche/shared/clock.ts";
import { uuidv7TimeMs, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { Attempt, BillingIdentity, UsageRecord } from "@weiche/shared/usage-record.ts";
import { retryConflicts, type Database } from "../db/database.ts";
import { refusalOf, type UsageRefusal } from "./usage-check.ts";
import { commitUsage, type Committed } from "./usage-commit.ts";
import type { NodeRecord } from "./usage-rows.ts";
import { free } from "./usage-voids.ts";
import { makeUsageDays, oldestKeptMs, rollUsageDays } from "./usage-days.ts";

export interface UsageLedger {
  /**
   * Resolves once the records are committed, each at most once by (request id, attempt), with the running totals moved
   * in the same transaction. Rejects if they are not: then nothing is acknowledged and the agent sends them again.
   */
  record(node: NodeId, records: readonly UsageRecord[]): Promise<void>;
  /** Resolves once it is committed that these attempts cost nothing, whatever their nodes have recorded or will record. */
  declareVoid(attempts: readonly VoidAttempt[]): Promise<void>;
}

export interface VoidAttempt extends Attempt, BillingIdentity {
  readonly node: NodeId;
  readonly model: ModelId;
}

/** `repeated` of the records were there already; `voided` attempts had cost something and are void now. */
export interface CommittedBatch {
  readonly records: number;
  readonly repeated: number;
  readonly voided: number;
  readonly durationMs: number;
}

export interface UsageLedgerEvents {
  usageCommitted(batch: CommittedBatch): void;
  usageCommitFailed(error: unknown): void;
  /** Acknowledged, but not recorded. */
  usageRefused(node: NodeId, reason: UsageRefusal): void;
  usageDaysFailed(error: unknown): void;
}

export interface UsageLedgerOptions {
  /** How many days of records are kept; totals are kept for ever. */
  readonly keepDays?: number;
  /** Of such a model only the input is counted, whatever a node reports of its output. */
  readonly makesEmbeddings?: (model: ModelId) => boolean;
}

/** Measured: twice as many are no faster, and hold the event loop twice as long at a time. */
const batchRecordsMax = 500;
const batchMsMax = 20;
const rollDaysMs = 3_600_000;

/** Resolves once there is a place for today's records. */
export async function createUsageLedger(
  database: Database,
  clock: Clock,
  events: UsageLedgerEvents,
  { keepDays = 400, makesEmbeddings = () => false }: UsageLedgerOptions = {},
): Promise<UsageLedger & AsyncDisposable> {
  await rollUsageDays(database.pool, clock.now(), keepDays);
  const rolling = every(clock, rollDaysMs, async () => {
    await rollUsageDays(database.pool, clock.now(), keepDays).catch((error: unknown) => events.usageDaysFailed(error));
  });
  const ledger = new BatchingLedger(database, clock, events, { keepDays, makesEmbeddings });
  return {
    record: (node, records) => ledger.record(node, records),
    declareVoid: (attempts) => ledger.declareVoid(attempts),
    async [Symbol.asyncDispose]() {
      rolling.cancel();
      await ledger.idle();
    },
  };
}

interface Waiting extends NodeRecord {
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

class BatchingLedger implements UsageLedger {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #events: UsageLedgerEvents;
  readonly #options: Required<UsageLedgerOptions>;
  #waiting: Waiting[] = [];
  #timer: Timer | undefined;
  #committing: Promise<void> | undefined;

  constructor(database: Database, clock: Clock, events: UsageLedgerEvents, options: Required<UsageLedgerOptions>) {
    this.#database = database;
    this.#clock = clock;
    this.#events = events;
    this.#options = options;
  }

  async record(node: NodeId, records: readonly UsageRecord[]): Promise<void> {
    const nowMs = this.#clock.now();
    const { keepDays, makesEmbeddings } = this.#options;
    const oldestMs = oldestKeptMs(nowMs, keepDays);
    const taken = records.filter((record) => {
      const refusal = refusalOf(record, oldestMs, nowMs);
      if (refusal !== undefined) this.#events.usageRefused(node, refusal);
      return refusal === undefined;
    });
    if (taken.length === 0) return;
    await this.#commitSoon(
      taken.map((one) => ({ node, record: makesEmbeddings(one.model) ? { ...one, completionTokens: 0 } : one })),
    );
  }

  async declareVoid(attempts: readonly VoidAttempt[]): Promise<void> {
    await this.#commitSoon(attempts.map(({ node, ...attempt }) => ({ node, record: { ...attempt, ...free } })));
  }

  #commitSoon(records: readonly NodeRecord[]): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      let open = records.length;
      const done = () => {
        if (--open === 0) resolve();
      };
      for (const { node, record } of records) this.#waiting.push({ node, record, done, failed: reject });
      this.#schedule();
    });
  }

  /** Resolves when everything that was asked for is committed or refused. */
  async idle(): Promise<void> {
    while (this.#waiting.length > 0 || this.#committing) {
      this.#startCommit();
      await this.#committing;
    }
  }

  #schedule(): void {
    if (this.#waiting.length >= batchRecordsMax) this.#startCommit();
    else this.#timer ??= this.#clock.after(batchMsMax, () => this.#startCommit());
  }

  #startCommit(): void {
    if (this.#committing) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    const batch = this.#waiting.slice(0, batchRecordsMax);
    this.#waiting = this.#waiting.slice(batchRecordsMax);
    this.#committing = this.#commit(batch).finally(() => {
      this.#committing = undefined;
      if (this.#waiting.length > 0) this.#schedule();
    });
  }

  /** Never rejects: each caller hears of its own. */
  async #commit(batch: readonly Waiting[]): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    try {
      const { inserted, voided } = await retryConflicts(() => this.#insert(batch));
      const durationMs = this.#clock.monotonicMs() - startMs;
      const records = batch.filter(({ record }) => record.outcome !== "void").length;
      this.#events.usageCommitted({ records, repeated: records - inserted, voided, durationMs });
      for (const { done } of batch) done();
    } catch (error) {
      this.#events.usageCommitFailed(error);
      for (const { failed } of batch) failed(error);
    }
  }

  async #insert(batch: readonly Waiting[]): Promise<Committed> {
    const { pool } = this.#database;
    try {
      return await commitUsage(pool, batch);
    } catch (error) {
      if (!isMissingDay(error)) throw error;
      await makeUsageDays(
        pool,
        batch.map(({ record }) => uuidv7TimeMs(record.requestId)),
      );
      return commitUsage(pool, batch);
    }
  }
}

/** The row fits no partition: the database names no constraint then, as it does for every check that fails. */
function isMissingDay(error: unknown): boolean {
  const { code, constraint } = error as { code?: string; constraint?: string };
  return code === "23514" && constraint === undefined;
}
