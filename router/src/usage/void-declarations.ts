/**
 * Keeps void attempts until the database has committed their voids. Every attempt that the router gave up is declared,
 * because it may have a record. An honest node writes no record of a refused attempt, so only a limited number of these
 * is declared (decision 46).
 */
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import type { UsageLedger, VoidAttempt } from "./usage-ledger.ts";

export interface VoidEvents {
  /** The router gave up an attempt, but cannot declare it because too many wait for the database. */
  voidLost(): void;
}

/** Nodes keep their records for the same time, and send them again after a database lost commits. */
const keptMs = 3_600_000;
const keptMax = 100_000;
/** About 50 MB: an hour without a database in which 28 answers a second break off. */
const waitingMax = 100_000;
/** A smaller bound for refused attempts leaves room for attempts that the router gave up. */
const refusedWaitingMax = 10_000;
const refusedBurst = 1_000;
const refusedPerSecond = 20;
const batchAttemptsMax = 500;
const retryMs = 1_000;
/** How long a stopping router waits for the database. */
const closeMsMax = 5_000;

interface Waiting {
  readonly attempt: VoidAttempt;
  readonly isRefused: boolean;
}

export function createVoidDeclarations(
  ledger: Pick<UsageLedger, "declareVoid">,
  clock: Clock,
  events: VoidEvents = { voidLost() {} },
) {
  const waiting: Waiting[] = [];
  /** Voids that were committed but may be lost. They are committed after `waiting` and take no room from it. */
  const repeated = new Set<Waiting>();
  /** Committed attempts that the router gave up, oldest first. */
  let kept: { readonly attempt: VoidAttempt; readonly atMs: number }[] = [];
  const mayDeclareRefused = refusedAllowance(clock);
  let onAllCommitted: () => void = () => {};
  const commitAll = async () => {
    while (waiting.length + repeated.size > 0) {
      const isNew = waiting.length > 0;
      const batch = isNew ? waiting.slice(0, batchAttemptsMax) : repeated.values().take(batchAttemptsMax).toArray();
      await ledger.declareVoid(batch.map(({ attempt }) => attempt));
      if (isNew) waiting.splice(0, batch.length);
      else for (const one of batch) repeated.delete(one);
      keep(batch);
    }
    onAllCommitted();
  };
  const keep = (batch: readonly Waiting[]) => {
    const atMs = clock.monotonicMs();
    for (const { attempt, isRefused } of batch) if (!isRefused) kept.push({ attempt, atMs });
    const fresh = kept.findIndex((one) => atMs - one.atMs < keptMs);
    kept = kept.slice(fresh < 0 ? kept.length : fresh).slice(-keptMax);
  };
  // The ledger reports failures.
  const committing = new SingleFlight(clock, commitAll, retryMs);
  const declare = (attempt: VoidAttempt, isRefused: boolean) => {
    waiting.push({ attempt, isRefused });
    committing.wish();
  };
  return {
    /** Declares an attempt that the router gave up. Returns at once; the void is committed when the database is reachable. */
    declare(attempt: VoidAttempt): void {
      if (waiting.length < waitingMax) declare(attempt, false);
      else events.voidLost();
    },
    /** Declares an attempt that the node refused before its engine began. */
    declareRefused(attempt: VoidAttempt): void {
      if (waiting.length < refusedWaitingMax && mayDeclareRefused()) declare(attempt, true);
    },
    /** Declares the attempts given up within the last hour again, for a database that may have lost commits. */
    declareAgain(): void {
      for (const { attempt } of kept) repeated.add({ attempt, isRefused: false });
      kept = [];
      const beyond = Math.max(0, repeated.size - keptMax);
      for (const oldest of repeated.values().take(beyond)) repeated.delete(oldest);
      if (repeated.size > 0) committing.wish();
    },
    /** Tries for at most 5 s to commit the rest. */
    async [Symbol.asyncDispose](): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      onAllCommitted = resolve;
      if (waiting.length + repeated.size > 0) await within(clock, closeMsMax, promise);
      committing.cancel();
    },
  };
}

/** Returns a function that grants `refusedBurst` declarations at once, and then `refusedPerSecond`. */
function refusedAllowance(clock: Clock): () => boolean {
  let left = refusedBurst;
  let atMs = clock.monotonicMs();
  return () => {
    const nowMs = clock.monotonicMs();
    left = Math.min(refusedBurst, left + ((nowMs - atMs) / 1_000) * refusedPerSecond);
    atMs = nowMs;
    if (left < 1) return false;
    left--;
    return true;
  };
}
