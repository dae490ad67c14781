/** Classifies failures of statements: the database is unavailable or too slow, or refuses the data. */
import type { Clock } from "@weiche/shared/time/clock.ts";

class NotInTime extends Error {
  constructor(msMax: number) {
    super(`the database did not answer within ${msMax} ms`);
  }
}

/** Returns the result of `work`. Rejects with `NotInTime` after `msMax`; the work continues, but its result is dropped. */
export async function inTime<T>(clock: Clock, msMax: number, work: () => Promise<T>): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const deadline = clock.after(msMax, () => reject(new NotInTime(msMax)));
  try {
    return await Promise.race([work(), over]);
  } finally {
    deadline.cancel();
  }
}

/** Messages of the driver's errors that have no code. */
const lostMessages =
  /^(timeout exceeded when trying to connect|Connection terminated|Query read timeout|Client .* is not queryable)/;

/** Returns whether the database is unavailable or too slow. Any other error is the statement's fault. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof NotInTime) return true;
  const { code = "", syscall, message } = error as { code?: string; syscall?: string; message?: string };
  // Lost connections, lack of resources, cancellation by operator or timeout, lock timeout, conflicts, a standby.
  if (/^(08|53|57)[0-9A-Z]{3}$|^(55P03|40001|40P01|25006)$/.test(code)) return true;
  if (syscall === "connect" || code === "ECONNRESET" || code === "EPIPE") return true;
  return lostMessages.test(message ?? "");
}

/** Returns whether a statement's values are at fault, so that it would fail again. */
export function isDataError(error: unknown): boolean {
  // SQLSTATE classes: cardinality, data exception (such as a number out of range), constraint.
  return /^2[123][0-9A-Z]{3}$/.test((error as { code?: string }).code ?? "");
}
