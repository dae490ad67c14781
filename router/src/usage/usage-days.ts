/**
 * The partitions of `usage_records`, one per UTC day of the request id. They are made in advance or when a record needs
 * one, and dropped when their retention ends.
 */
import type { Pool, PoolClient } from "pg";

const dayMs = 86_400_000;
const daysAhead = 3;
/** Advisory lock, so that only one router at a time changes partitions. */
const lockId = 7_310_201_899;
/** Advisory lock that a backup shares while it reads, so that no partition is dropped meanwhile. */
export const backupLock = 7_310_201_900;

function startOfDay(ms: number): number {
  return Math.floor(ms / dayMs) * dayMs;
}

/** Makes the missing partitions of the days of these instants. Inserts continue meanwhile. */
export async function makeUsageDays(pool: Pool, instantsMs: Iterable<number>): Promise<void> {
  const days = new Set([...instantsMs].map(startOfDay));
  await locked(pool, async (client) => {
    for (const day of days) {
      const name = partitionOf(day);
      const { rows } = await client.query<{ missing: boolean }>(`select to_regclass('${name}') is null as missing`);
      if (!rows[0]!.missing) continue;
      // Created separately and then attached, because creating it as a partition would block all inserts.
      await client.query(`create table ${name} (like usage_records including all)`);
      await client.query(
        `alter table usage_records attach partition ${name} for values from ('${lowestId(day)}') to ('${lowestId(day + dayMs)}')`,
      );
    }
  });
}

/** Makes partitions for today and the next days, and drops those older than `keepDays`. Returns how many were dropped. */
export async function rollUsageDays(pool: Pool, nowMs: number, keepDays: number): Promise<number> {
  await makeUsageDays(
    pool,
    Array.from({ length: daysAhead + 1 }, (_, n) => nowMs + n * dayMs),
  );
  const oldest = partitionOf(oldestKeptMs(nowMs, keepDays));
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'usage_records'::regclass and c.relname < $1`,
    [oldest],
  );
  let dropped = 0;
  await locked(pool, async (client) => {
    const { rows: free } = await client.query<{ is: boolean }>("select pg_try_advisory_xact_lock($1) as is", [
      backupLock,
    ]);
    if (!free[0]!.is) return;
    for (const { name } of rows) await client.query(`drop table if exists ${name}`);
    dropped = rows.length;
  });
  return dropped;
}

/** Returns the start of the oldest kept day. */
export function oldestKeptMs(nowMs: number, keepDays: number): number {
  return startOfDay(nowMs) - keepDays * dayMs;
}

async function locked(pool: Pool, work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [lockId]);
    await work(client);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

function partitionOf(startMs: number): string {
  const day = Temporal.Instant.fromEpochMilliseconds(startMs).toString().slice(0, 10);
  return `usage_records_${day.replaceAll("-", "")}`;
}

/** Returns the day of a partition in ms since 1970, by the partition's name; undefined for other names. */
export function dayOfPartition(name: string): number | undefined {
  const [, year, month, day] = /^usage_records_(\d{4})(\d\d)(\d\d)$/.exec(name) ?? [];
  return day === undefined ? undefined : Date.UTC(Number(year), Number(month) - 1, Number(day));
}

/** Returns the lowest UUID whose first 48 bits are this time. */
export function lowestId(ms: number): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
