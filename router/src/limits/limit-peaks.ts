/**
 * The highest use of accounts' limits by hour, for the overview. It is kept in memory and stored every half minute. A killed
 * router loses what it has not stored, and so does one whose database is away.
 */
import type { Pool } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { instantText, retryConflicts } from "../db/database.ts";
import type { Limiter, LimitUse } from "./limiter.ts";
import { higher, type MemoryLimiter } from "./memory-limiter.ts";

export const peaksEveryMs = 30_000;
/** How far back the overview looks. */
export const peakMs = 86_400_000;
const hourMs = 3_600_000;
const accountsAtOnce = 50;

/**
 * Stores the peaks since the last call. If routers share limits, the store is asked for the present use over all routers,
 * so that the shared peak is sampled.
 */
export async function storePeaks(pool: Pool, clock: Clock, own: MemoryLimiter, limiter: Limiter): Promise<void> {
  const peaks = [...own.takePeaks()].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (let from = 0; from < peaks.length; from += accountsAtOnce)
    await write(pool, clock, await Promise.all(peaks.slice(from, from + accountsAtOnce).map(shared)));
  await pool.query("delete from limit_peaks where hour < $1", [instantText(clock.now() - peakMs - hourMs)]);

  async function shared([account, peak]: readonly [AccountId, LimitUse]): Promise<readonly [AccountId, LimitUse]> {
    return [account, higher(await limiter.use(account), peak)];
  }
}

/** The rows are ordered by account, so that routers that write at once do not wait for each other in a circle. */
async function write(pool: Pool, clock: Clock, peaks: readonly (readonly [AccountId, LimitUse])[]): Promise<void> {
  const hour = instantText(Math.floor(clock.now() / hourMs) * hourMs);
  const values = [
    hour,
    peaks.map(([account]) => account),
    peaks.map(([, { lastMinute }]) => lastMinute),
    peaks.map(([, { parallel }]) => parallel),
  ];
  const text = `
    insert into limit_peaks as p (account_id, hour, per_minute, parallel)
    select account, $1, minute, parallel from unnest($2::uuid[], $3::integer[], $4::integer[]) r (account, minute, parallel)
    on conflict (account_id, hour) do update
      set per_minute = greatest(p.per_minute, excluded.per_minute), parallel = greatest(p.parallel, excluded.parallel)`;
  await retryConflicts(() => pool.query({ name: "store-peaks", text, values }));
}
