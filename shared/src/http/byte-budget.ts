/** Limits the bytes of large bodies in memory. A request that finds no room waits in line, its body unread. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { EndSignal } from "../time/end-signal.ts";

interface Waiter {
  readonly bytes: number;
  readonly admit: () => void;
}

/** A large body waits for others that are on their way to a node; waiting longer is no use. */
const waitMsMax = 30_000;

export class ByteBudget {
  #free: number;
  readonly #waiters: Waiter[] = [];
  readonly #clock: Clock;

  constructor(bytesMax: number, clock: Clock) {
    this.#free = bytesMax;
    this.#clock = clock;
  }

  /** Resolves when there is room. Rejects with 503 after 30 s, or with the signal's reason. */
  take(bytes: number, signal: EndSignal): Promise<void> {
    if (this.#waiters.length === 0 && bytes <= this.#free) {
      this.#free -= bytes;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      };
      const waiter = {
        bytes,
        admit: () => {
          leave();
          resolve();
        },
      };
      const onAbort = () => {
        leave();
        reject(signal.reason as Error);
        this.#admit();
      };
      const timer = this.#clock.after(waitMsMax, () => {
        leave();
        reject(new ApiError("overloaded", "Too many large requests at once.", { retryAfterSeconds: 2 }));
        this.#admit();
      });
      this.#waiters.push(waiter);
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  give(bytes: number): void {
    this.#free += bytes;
    this.#admit();
  }

  #admit(): void {
    for (let next = this.#waiters[0]; next && next.bytes <= this.#free; next = this.#waiters[0]) {
      this.#free -= next.bytes;
      next.admit();
    }
  }
}
