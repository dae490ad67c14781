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

export type ExportPlaces = ReturnType<typeof createExportPlaces>;

/**
 * Returns a function that takes a place until it is disposed. It rejects with `ApiError` after `waitMsMax`, and with the
 * signal's reason.
 */
export function createExportPlaces(clock: Clock) {
  const exporting = new Set<string>();
  const line: Waiting[] = [];
  const isFree = (account: string) => exporting.size < atOnceMax && !exporting.has(account);

  function wait(account: string, signal: AbortSignal): Promise<void> {
    if (line.length >= waitingMax || line.some((waiting) => waiting.account === account)) throw busy();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { account, enter: resolve };
    const giveUp = (reason: Error) => {
      const place = line.indexOf(waiting);
      if (place >= 0) line.splice(place, 1);
      reject(reason);
    };
    const deadline = clock.after(waitMsMax, () => giveUp(busy()));
    const left = () => giveUp(signal.reason as Error);
    signal.addEventListener("abort", left);
    line.push(waiting);
    return promise.finally(() => {
      deadline.cancel();
      signal.removeEventListener("abort", left);
    });
  }

  function leave(account: string): void {
    exporting.delete(account);
    for (const waiting of [...line]) {
      if (!isFree(waiting.account)) continue;
      line.splice(line.indexOf(waiting), 1);
      exporting.add(waiting.account);
      waiting.enter();
    }
  }

  return async (account: string, signal: AbortSignal): Promise<Disposable> => {
    signal.throwIfAborted();
    if (isFree(account)) exporting.add(account);
    else await wait(account, signal);
    return { [Symbol.dispose]: () => leave(account) };
  };
}

function busy(): ApiError {
  return new ApiError("overloaded", "Other exports are running.", { retryAfterSeconds: 5 });
}
