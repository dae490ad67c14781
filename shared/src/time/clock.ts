/**
 * Time as an argument. All code that waits or reads the time gets a clock, so that the same code runs on virtual time
 * in simulations. Only this file touches the real clock.
 */
export interface Clock extends WallClock, MonotonicClock {
  /** Calls `callback` once, `delayMs` from now. */
  after(delayMs: number, callback: () => void): Timer;
}

export interface WallClock {
  /** Wall time in milliseconds since the epoch. May jump. */
  now(): number;
}

export interface MonotonicClock {
  /** Monotonic milliseconds; only differences are meaningful. */
  monotonicMs(): number;
}

export interface Timer {
  /** Does nothing if the timer has fired or was cancelled. */
  cancel(): void;
}

/** Node treats any longer delay (25 days and more) as 1 ms. */
const timeoutMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    if (delayMs <= timeoutMsMax) {
      const timeout = setTimeout(callback, delayMs);
      return { cancel: () => clearTimeout(timeout) };
    }
    let timer = systemClock.after(timeoutMsMax, () => {
      timer = systemClock.after(delayMs - timeoutMsMax, callback);
    });
    return { cancel: () => timer.cancel() };
  },
};

/** Resolves after `delayMs`. Rejects with the signal's reason if the signal aborts first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Resolves when `task` does, or after `msMax`. Rejects if `task` rejects before. */
export async function within(clock: Clock, msMax: number, task: Promise<unknown>): Promise<void> {
  const { promise: isOver, resolve } = Promise.withResolvers<void>();
  const deadline = clock.after(msMax, resolve);
  try {
    await Promise.race([task, isOver]);
  } finally {
    deadline.cancel();
  }
}

/** Calls `task` every `periodMs` after the previous call has settled. `task` handles its own errors. */
export function every(clock: Clock, periodMs: number, task: () => void | Promise<void>): Timer {
  let cancelled = false;
  let timer = clock.after(periodMs, tick);
  function tick(): void {
    void Promise.resolve(task()).finally(() => {
      if (!cancelled) timer = clock.after(periodMs, tick);
    });
  }
  return {
    cancel() {
      cancelled = true;
      timer.cancel();
    },
  };
}
