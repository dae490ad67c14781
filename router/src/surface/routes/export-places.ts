/**
 * Limits exports, each of which holds a database connection: few at once, one per account, and one more per account waits,
 * in the order of arrival. So nobody gets more by asking more often, and a client that leaves loses its place.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";

const atOnceMax = 2;
const waitingMax = 32;
export const waitMsMax = 10_000;

interface Waiting {
  readonly account: string;
  readonly enter: () => void;
}

export class ExportPlaces {
  readonly #clock: Clock;
  readonly #busy = new Set<string>();
  readonly #line: Waiting[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a place until it is disposed. Rejects with `ApiError` after `waitMsMax`, and with the signal's reason. */
  async enter(account: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#isFree(account)) this.#busy.add(account);
    else await this.#wait(account, signal);
    return { [Symbol.dispose]: () => this.#leave(account) };
  }

  #isFree(account: string): boolean {
    return this.#busy.size < atOnceMax && !this.#busy.has(account);
  }

  #wait(account: string, signal: AbortSignal): Promise<void> {
    if (this.#line.length >= waitingMax || this.#line.some((waiting) => waiting.account === account)) throw busy();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { account, enter: resolve };
    const giveUp = (reason: Error) => {
      const place = this.#line.indexOf(waiting);
      if (place >= 0) this.#line.splice(place, 1);
      reject(reason);
    };
    const deadline = this.#clock.after(waitMsMax, () => giveUp(busy()));
    const left = () => giveUp(signal.reason as Error);
    signal.addEventListener("abort", left);
    this.#line.push(waiting);
    return promise.finally(() => {
      deadline.cancel();
      signal.removeEventListener("abort", left);
    });
  }

  #leave(account: string): void {
    this.#busy.delete(account);
    for (const waiting of [...this.#line]) {
      if (!this.#isFree(waiting.account)) continue;
      this.#line.splice(this.#line.indexOf(waiting), 1);
      this.#busy.add(waiting.account);
      waiting.enter();
    }
  }
}

function busy(): ApiError {
  return new ApiError("overloaded", "Other exports are running.", { retryAfterSeconds: 5 });
}
