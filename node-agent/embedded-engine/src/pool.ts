/**
 * Lends a fixed number of items to one user each, and queues requests in order of arrival. The queue is limited, and a
 * request that leaves it is removed at once.
 */
import { RequestError } from "./request/request-error.ts";

/** The most waiting requests. The node-agent admits no more than run at once, so only direct users wait here. */
export const waitersMax = 256;

interface Waiter<T> {
  readonly choose: (free: readonly T[]) => T;
  readonly accept: (item: T) => void;
}

export class Pool<T> {
  readonly #free: T[];
  readonly lent = new Set<T>();
  readonly #waiters: Waiter<T>[] = [];

  constructor(items: readonly T[]) {
    this.#free = [...items];
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** Resolves with the chosen free item. Free items are in the order of their release. Rejects on abort. */
  acquire(signal: AbortSignal, choose: (free: readonly T[]) => T = (free) => free[0]!): Promise<T> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (this.#waiters.length >= waitersMax)
        return reject(new RequestError(503, "service_unavailable", "too many requests are waiting"));
      const leave = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal.reason as Error);
      };
      const waiter: Waiter<T> = {
        choose,
        accept(item) {
          signal.removeEventListener("abort", leave);
          resolve(item);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiters.push(waiter);
      this.#serve();
    });
  }

  release(item: T): void {
    this.lent.delete(item);
    this.#free.push(item);
    this.#serve();
  }

  #serve(): void {
    while (this.#free.length > 0 && this.#waiters.length > 0) {
      const waiter = this.#waiters.shift()!;
      const item = waiter.choose(this.#free);
      this.#free.splice(this.#free.indexOf(item), 1);
      this.lent.add(item);
      waiter.accept(item);
    }
  }
}
