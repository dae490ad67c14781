/** Keeps the attempts that the router has given up until the database has committed that they are void. */
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import type { UsageLedger, VoidAttempt } from "./usage-ledger.ts";

/** As long as nodes keep their records, which they send again to a database that has lost commits. */
const keptMs = 3_600_000;
const keptMax = 100_000;
const batchAttemptsMax = 500;
const retryMs = 1_000;
/** How long a stopping router waits for the database. */
const closeMsMax = 5_000;

export function createVoidDeclarations(ledger: Pick<UsageLedger, "declareVoid">, clock: Clock) {
  let waiting: VoidAttempt[] = [];
  /** Committed ones, the oldest first. */
  let kept: { readonly attempt: VoidAttempt; readonly atMs: number }[] = [];
  let onAllCommitted: () => void = () => {};
  const commitAll = async () => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchAttemptsMax);
      await ledger.declareVoid(batch);
      waiting = waiting.slice(batch.length);
      const nowMs = clock.monotonicMs();
      const all = [...kept, ...batch.map((attempt) => ({ attempt, atMs: nowMs }))];
      kept = all.filter(({ atMs }) => nowMs - atMs < keptMs).slice(-keptMax);
    }
    onAllCommitted();
  };
  // Failures are reported by the ledger.
  const committing = new SingleFlight(clock, commitAll, retryMs);
  return {
    /** Returns at once; the void is committed as soon as the database is there. */
    declare(attempt: VoidAttempt): void {
      waiting.push(attempt);
      committing.wish();
    },
    /** Declares all of the last hour once more, for a database that may have lost commits. */
    declareAgain(): void {
      waiting.push(...kept.map(({ attempt }) => attempt));
      kept = [];
      committing.wish();
    },
    /** Tries for up to 5 s to commit the rest. */
    async [Symbol.asyncDispose](): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      onAllCommitted = resolve;
      if (waiting.length > 0) await within(clock, closeMsMax, promise);
      committing.cancel();
    },
  };
}
