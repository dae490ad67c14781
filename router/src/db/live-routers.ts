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

/**
 * Text that changes when commits may have been lost: the identity of the database, which a restore replaces, and its
 * timeline, which grows when a standby takes over. Servers that do not tell their timeline have the identity alone.
 */
const ledgerText = "select id || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) as ledger from ledger_identity";
const identityText = "select id::text as ledger from ledger_identity";

export interface LiveRouter extends AsyncDisposable {
  /** Sends a heartbeat and looks for other routers. */
  beat(): Promise<void>;
  /** How many there are, as of the last heartbeat. */
  readonly others: () => number;
  /** Names the state of the database that usage is committed to, as of the last heartbeat. */
  readonly ledger: () => string;
}

/** Resolves after the first heartbeat. */
export async function joinRouters(
  { pool }: Pick<Database, "pool">,
  routerId: string,
  events: LiveRouterEvents,
): Promise<LiveRouter> {
  // A router without a heartbeat since then may be this one before its restart.
  const joinedAt = (await say()).seenAt;
  let tellsTimeline = true;
  let ledger = await readLedger();
  const earlier = idsOf(await pool.query<{ id: string }>("select id from routers where id <> $1", [routerId]));
  let others: ReadonlySet<string> = new Set();

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
    ledger = await readLedger();
  }

  async function readLedger(): Promise<string> {
    try {
      const { rows } = await pool.query<{ ledger: string }>(tellsTimeline ? ledgerText : identityText);
      return rows[0]!.ledger;
    } catch (error) {
      if (!tellsTimeline || !isUnsupported(error)) throw error;
      tellsTimeline = false;
      return readLedger();
    }
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
    others: () => others.size,
    ledger: () => ledger,
    async [Symbol.asyncDispose](): Promise<void> {
      // If this fails, the others notice after 15 s.
      await pool.query("delete from routers where id = $1", [routerId]).catch(() => {});
    },
  };
}

function idsOf({ rows }: { readonly rows: readonly { readonly id: string }[] }): ReadonlySet<string> {
  return new Set(rows.map(({ id }) => id));
}

/** No permission, no such function, or not supported. */
function isUnsupported(error: unknown): boolean {
  return ["42501", "42883", "0A000"].includes((error as { code?: string }).code ?? "");
}
