/** Leases for work of one router at a time: rows with a holder and an end by the database's clock. */
import type { Pool } from "pg";
import type { StartJob } from "@weiche/shared/time/job.ts";

/**
 * Runs a job on one router only: the router with the lease of the job's name. The other routers try to take the lease each
 * time. This counts as a successful run too, so that alerts on a job's last run work on every router.
 */
export function jobOfOneRouter<Name extends string>(job: StartJob<Name>, pool: Pool, holder: string): StartJob<Name> {
  return (name, everyMs, work, options) => {
    const workIfMine = async () => {
      if (await takeLease(pool, name, holder, everyMs * 1.5)) await work();
    };
    const running = job(name, everyMs, workIfMine, options);
    return {
      async [Symbol.asyncDispose]() {
        await running[Symbol.asyncDispose]();
        await giveLeaseBack(pool, name, holder).catch(() => {}); // the lease expires by itself
      },
    };
  };
}

/** Takes or renews the lease for `leaseMs` from now. Returns false if another router holds it. */
async function takeLease(pool: Pool, name: string, holder: string, leaseMs: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    `insert into leases values ($1, $2, now() + $3 * interval '1 millisecond')
     on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until
     where leases.holder = excluded.holder or leases.held_until <= now()`,
    [name, holder, leaseMs],
  );
  return rowCount === 1;
}

/** Does nothing if another router holds the lease. */
async function giveLeaseBack(pool: Pool, name: string, holder: string): Promise<void> {
  await pool.query("delete from leases where name = $1 and holder = $2", [name, holder]);
}
