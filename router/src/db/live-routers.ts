/** Which routers share the database: each sends a heartbeat every 5 s, and counts as gone 15 s after the last one. */
import type { Database } from "./database.ts";

export interface LiveRouterEvents {
  /**
   * The other routers have changed; `count`: how many there are now. `wereFirst`: one of those that are new to this
   * router was there before it.
   */
  otherRouters(count: number, wereFirst: boolean): void;
}

/** Interval of heartbeats. */
export const beatMs = 5_000;

/** Resolves after the first heartbeat. */
export async function joinRouters({ pool }: Pick<Database, "pool">, routerId: string, events: LiveRouterEvents) {
  // A router without a heartbeat since then may be this one before its restart.
  const joinedAt = (await say()).seenAt;
  const earlier = idsOf(await pool.query<{ id: string }>("select id from routers where id <> $1", [routerId]));
  let others: ReadonlySet<string> = new Set();

  /** Sends a heartbeat and looks for other routers. */
  async function beat(): Promise<void> {
    const { seenAt } = await say();
    const heard = await pool.query<{ id: string }>(
      `with forgotten as (delete from routers where seen_at < $2::timestamptz - interval '1 minute')
       select id from routers
       where id <> $1 and seen_at > $3 and seen_at > $2::timestamptz - interval '15 seconds'`,
      [routerId, seenAt, joinedAt],
    );
    const live = idsOf(heard);
    const came = live.difference(others);
    if (came.size > 0 || live.size < others.size) events.otherRouters(live.size, !came.isDisjointFrom(earlier));
    others = live;
  }

  async function say(): Promise<{ readonly seenAt: string }> {
    const { rows } = await pool.query<{ seenAt: string }>(
      `insert into routers values ($1, now())
       on conflict (id) do update set seen_at = excluded.seen_at returning seen_at::text as "seenAt"`,
      [routerId],
    );
    return rows[0]!;
  }

  return {
    beat,
    async [Symbol.asyncDispose](): Promise<void> {
      // If this fails, the others notice after 15 s.
      await pool.query("delete from routers where id = $1", [routerId]).catch(() => {});
    },
  };
}

function idsOf({ rows }: { readonly rows: readonly { readonly id: string }[] }): ReadonlySet<string> {
  return new Set(rows.map(({ id }) => id));
}
