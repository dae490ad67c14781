/** A ledger at a fixed date with recorded events, and usage records for it. */
import { systemClock } from "@weiche/shared/time/clock.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import type { CommittedBatch, UsageQueueEvents } from "../../src/usage/usage-queue.ts";
import type { Database } from "../../src/db/database.ts";
import { grants, idOf, makeRecord, sumOf, sumsOf } from "./usage-records.ts";

export const nowMs = Date.parse("2026-11-21T12:00:00Z");

interface Recorded extends UsageQueueEvents {
  readonly committed: CommittedBatch[];
  readonly refused: string[];
  readonly failed: unknown[];
}

export function recorder(): Recorded {
  const committed: Recorded["committed"] = [];
  const refused: string[] = [];
  const failed: unknown[] = [];
  return {
    committed,
    refused,
    failed,
    usageCommitted: (batch) => void committed.push(batch),
    usageCommitFailed: (error) => void failed.push(error),
    usageSetAside: (_node, reason, count) => void refused.push(...Array.from({ length: count }, () => reason)),
  };
}

/** A clock with real timers at a fixed date. */
export const clock = { ...systemClock, now: () => nowMs };

export function openLedgerOn(database: Database, events: UsageQueueEvents = recorder()) {
  return createUsageLedger(database, clock, events, { grants });
}

export function records(
  count: number,
  seed = 1,
  more: (n: number) => Partial<UsageRecord> = () => ({}),
): UsageRecord[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, n) => makeRecord(random, nowMs - random.below(3_600_000), more(n)));
}

/** Returns the expected value of every kind of sum of the records. */
export function everySum(expected: readonly UsageRecord[]): Awaited<ReturnType<typeof sumsOf>> {
  const sum = sumOf(expected);
  return { records: sum, account: sum, user: sum, key: sum, model: sum, days: sum };
}

export async function subscribe(
  database: Database,
  account: number,
  startedAt: string,
  endedAt: string | null = null,
): Promise<void> {
  const id = idOf("a", account);
  await database.pool.query("insert into accounts values ($1, $2, null, now()) on conflict do nothing", [
    id,
    `account ${account}`,
  ]);
  await database.pool.query("insert into subscriptions values ($1, 'Pro', 'active', $2, $3)", [id, startedAt, endedAt]);
}
