/** How statements fail: the database does not answer, or not in time, or refuses what it got. */
import type { Clock } from "@weiche/shared/time/clock.ts";

export class NotInTime extends Error {
  constructor(msMax: number) {
    super(`the database did not answer within ${msMax} ms`);
  }
}

/** What `work` resolves to. Rejects with `NotInTime` after `msMax`; the work itself goes on and nobody hears of it. */
export async function inTime<T>(clock: Clock, msMax: number, work: () => Promise<T>): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const deadline = clock.after(msMax, () => reject(new NotInTime(msMax)));
  try {
    return await Promise.race([work(), over]);
  } finally {
    deadline.cancel();
  }
}

/** What the driver says without a code. */
const lostMessages =
  /^(timeout exceeded when trying to connect|Connection terminated|Query read timeout|Client .* is not queryable)/;

/** Whether the database does not answer, or not in time. Anything else is a statement that is wrong. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof NotInTime) return true;
  const { code = "", syscall, message } = error as { code?: string; syscall?: string; message?: string };
  // Connections, resources, an operator's or a deadline's cancel, a lock's deadline, conflicts without end.
  if (/^(08|53|57)[0-9A-Z]{3}$|^(55P03|40001|40P01)$/.test(code)) return true;
  if (syscall === "connect" || code === "ECONNRESET" || code === "EPIPE") return true;
  return lostMessages.test(message ?? "");
}

/** Whether it lies in the values of a statement, which would fail with any other database as well. */
export function isRefusedData(error: unknown): boolean {
  // Cardinality, data exception (a number out of range), constraint.
  return /^2[123][0-9A-Z]{3}$/.test((error as { code?: string }).code ?? "");
}
