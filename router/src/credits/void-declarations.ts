/** Attempts that the router has given up: what waits until the database has committed that they cost nothing. */
import { sleep, within, type Clock } from "@weiche/shared/clock.ts";
import type { UsageLedger, VoidAttempt } from "./usage-ledger.ts";

const batchAttemptsMax = 500;
const retryMs = 1_000;
/** What a stopping router gives the database to take what is left. */
const closeMsMax = 5_000;

export class VoidDeclarations implements AsyncDisposable {
  readonly #ledger: Pick<UsageLedger, "declareVoid">;
  readonly #clock: Clock;
  #waiting: VoidAttempt[] = [];
  #committing: Promise<void> | undefined;
  #closed = false;

  constructor(ledger: Pick<UsageLedger, "declareVoid">, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** Waits for nothing: the declaration is committed as soon as the database takes it. */
  declare(attempt: VoidAttempt): void {
    this.#waiting.push(attempt);
    this.#committing ??= this.#commitAll();
  }

  /** Tries for up to 5 s to commit what is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await within(this.#clock, closeMsMax, this.#committing ?? Promise.resolve());
    this.#closed = true;
  }

  /** Ends in the very turn in which nothing waits any more, so that what is declared next starts it again. */
  async #commitAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closed) {
      const batch = this.#waiting.slice(0, batchAttemptsMax);
      try {
        await this.#ledger.declareVoid(batch);
        this.#waiting = this.#waiting.slice(batch.length);
      } catch {
        await sleep(this.#clock, retryMs); // the ledger has told of it
      }
    }
    this.#committing = undefined;
  }
}
