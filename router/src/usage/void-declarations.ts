/** Keeps the attempts that the router has given up until the database has committed that they are void. */
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import type { UsageLedger, VoidAttempt } from "./usage-ledger.ts";

const batchAttemptsMax = 500;
const retryMs = 1_000;
/** How long a stopping router waits for the database. */
const closeMsMax = 5_000;

export class VoidDeclarations implements AsyncDisposable {
  readonly #ledger: Pick<UsageLedger, "declareVoid">;
  readonly #clock: Clock;
  /** Failures are reported by the ledger. */
  readonly #committing: SingleFlight;
  #waiting: VoidAttempt[] = [];
  #onAllCommitted: () => void = () => {};

  constructor(ledger: Pick<UsageLedger, "declareVoid">, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
    this.#committing = new SingleFlight(
      clock,
      () => this.#commitAll(),
      () => retryMs,
    );
  }

  /** Returns at once; the void is committed as soon as the database is there. */
  declare(attempt: VoidAttempt): void {
    this.#waiting.push(attempt);
    this.#committing.wish();
  }

  /** Tries for up to 5 s to commit the rest. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onAllCommitted = resolve;
    if (this.#waiting.length > 0) await within(this.#clock, closeMsMax, promise);
    this.#committing.cancel();
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, batchAttemptsMax);
      await this.#ledger.declareVoid(batch);
      this.#waiting = this.#waiting.slice(batch.length);
    }
    this.#onAllCommitted();
  }
}
