/** Keeps the attempts that the router has given up until the database has committed that they are void. */
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import type { UsageLedger, VoidAttempt } from "./usage-ledger.ts";

const batchAttemptsMax = 500;
const retryMs = 1_000;
/** How long a stopping router waits for the database. */
const closeMsMax = 5_000;

export function createVoidDeclarations(ledger: Pick<UsageLedger, "declareVoid">, clock: Clock) {
  let waiting: VoidAttempt[] = [];
  let onAllCommitted: () => void = () => {};
  const commitAll = async () => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchAttemptsMax);
      await ledger.declareVoid(batch);
      waiting = waiting.slice(batch.length);
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
    /** Tries for up to 5 s to commit the rest. */
    async [Symbol.asyncDispose](): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      onAllCommitted = resolve;
      if (waiting.length > 0) await within(clock, closeMsMax, promise);
      committing.cancel();
    },
  };
}
