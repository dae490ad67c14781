/** Compares this machine's clock with the database's clock, which dates leases and heartbeats. */
import type { WallClock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { Database } from "./database.ts";

const differenceMsMax = 60_000;

/**
 * Returns by how many milliseconds this machine's clock is ahead; negative if it is behind. Because the query takes
 * time, it returns the smallest possible difference: 0 if the clocks may be equal.
 */
export async function clockAhead({ pool }: Database, clock: WallClock): Promise<number> {
  const beforeMs = clock.now();
  const { rows } = await pool.query<{ ms: number }>(
    "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
  );
  const { ms } = rows[0]!;
  const leastMs = beforeMs - ms;
  const mostMs = clock.now() + 1 - ms; // the clock counts whole milliseconds
  return Math.round(leastMs > 0 ? leastMs : Math.min(mostMs, 0)) + 0;
}

/** Throws a `StartError` if the clocks differ by a minute, because billing periods and retention depend on this clock. */
export async function requireClock(database: Database, clock: WallClock): Promise<void> {
  const aheadMs = await clockAhead(database, clock);
  if (Math.abs(aheadMs) < differenceMsMax) return;
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  throw new StartError(
    `this machine's clock is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} the database's: set both with NTP`,
  );
}
