/**
 * Finds the routers that share the database. Each writes a heartbeat with its state every 5 s, and counts as gone 15 s after
 * its last one.
 */
import { StartError } from "@weiche/shared/files/start-error.ts";
import { sleep, type Clock, type WallClock } from "@weiche/shared/time/clock.ts";
import { clockAhead } from "./clock-difference.ts";
import type { Database } from "./database.ts";

export interface LiveRouterEvents {
  /**
   * The other routers have changed. `count`: how many there are now. `wereFirst`: a router that this router sees for
   * the first time joined before it.
   */
  otherRouters(count: number, wereFirst: boolean): void;
}

/** Interval of heartbeats. */
export const beatMs = 5_000;

/** A live router sends its next heartbeat within this time, because intervals vary by a tenth. */
const silentMs = 6_000;
const lookMs = 250;

/** `gone`: the router's heartbeats ended without a stop, and no other router has replaced it. */
export const routerStates = ["starting", "ready", "leaving", "gone"] as const;
type RouterState = (typeof routerStates)[number];

/** Facts about a router that do not change while it runs. */
export interface RouterIdentity {
  readonly id: string;
  /** Host name of its machine. */
  readonly host: string;
  /** The router's state directory. Only one process at a time uses it. */
  readonly directory: string;
  readonly version: string;
  /** Name of the store of the accounts' limits. */
  readonly limitStore: string;
}

/** Facts about a router that each heartbeat updates. */
export interface RouterFacts {
  readonly state: Exclude<RouterState, "gone">;
  /** host:port that nodes dial for links. If undefined, only nodes that have the router configured find it. */
  readonly linkAddress?: string;
  readonly dataAddress?: string;
  readonly runningRequests: number;
  /** The digest of the catalogue in use. */
  readonly catalogue?: string;
  /** The nodes that are linked to the router. */
  readonly nodes: readonly string[];
}

/** A row of the table. A fact is null if the router's version does not write it. */
export interface KnownRouter {
  readonly id: string;
  readonly state: RouterState;
  readonly host: string | null;
  readonly version: string | null;
  readonly startedAt: Temporal.Instant | null;
  readonly seenAt: Temporal.Instant;
  readonly linkAddress: string | null;
  readonly dataAddress: string | null;
  readonly runningRequests: number | null;
  /** The time by which the router's clock is ahead of the database's clock; see `clockAhead`. */
  readonly clockAheadMs: number | null;
  readonly limitStore: string | null;
  readonly catalogue: string | null;
}

export interface LiveRouter extends AsyncDisposable {
  /** Makes heartbeats write these facts from now on. Resolves after the first one. */
  announce(facts: () => RouterFacts): Promise<void>;
  /** Writes a heartbeat and reads the other routers. */
  beat(): Promise<void>;
  /** Lists all routers as of the last heartbeat, this one included, the longest running first. */
  readonly routers: () => readonly KnownRouter[];
  /** Calls back when the addresses to which nodes may link have changed. */
  onChange(callback: () => void): void;
  /** Calls back when `ledger` has changed: after a failover or restore, the database may have lost its last commits. */
  onLedgerChange(callback: () => void): void;
  /** Returns how many other routers are live as of the last heartbeat. */
  readonly others: () => number;
  /** Returns whether nodes are linked to another live router as of the last heartbeat. */
  readonly othersHaveNodes: () => boolean;
  /** Returns the identity of the database for usage as of the last heartbeat. */
  readonly ledger: () => string;
  /** The nodes that were linked to any router in the minute before this router joined. */
  readonly seenNodes: ReadonlySet<string>;
}

/** Joins the routers of the database. Resolves after the first heartbeat. */
export async function joinRouters(
  database: Database,
  clock: WallClock,
  identity: RouterIdentity,
  events: LiveRouterEvents,
): Promise<LiveRouter> {
  const { pool } = database;
  const { id } = identity;
  const readLedger = ledgerReader(database);
  const seenNodes = await readSeenNodes(database);
  const earlier = await replaceEarlier(database, identity);
  let factsOf = (): RouterFacts => ({ state: "starting", runningRequests: 0, nodes: [] });
  const say = async () => sayFacts(database, identity, factsOf(), await clockAhead(database, clock));
  // A router without a heartbeat since then may have been killed before.
  const joinedAt = await say();
  let routers: readonly KnownRouter[] = [];
  let others: ReadonlySet<string> = new Set();
  let othersHaveNodes = false;
  let ledger = await readLedger();
  let told = "";
  const listeners: (() => void)[] = [];
  const ledgerListeners: (() => void)[] = [];

  async function beat(): Promise<void> {
    await say();
    routers = await readRouters(database, factsOf().linkAddress, id);
    const live = new Set(routers.flatMap((each) => (isOther(each) ? [each.id] : [])));
    const came = live.difference(others);
    if (came.size > 0 || live.size < others.size) events.otherRouters(live.size, !came.isDisjointFrom(earlier));
    others = live;
    othersHaveNodes = await readOthersHaveNodes(database, id);
    const ledgerBefore = ledger;
    ledger = await readLedger();
    if (ledger !== ledgerBefore) for (const listener of ledgerListeners) listener();
    const news = JSON.stringify(addressesOf(routers));
    if (news !== told) for (const listener of listeners) listener();
    told = news;
  }

  function isOther(router: KnownRouter): boolean {
    return router.id !== id && router.state !== "gone" && Temporal.Instant.compare(router.seenAt, joinedAt) > 0;
  }

  return {
    async announce(facts) {
      factsOf = facts;
      await beat();
    },
    beat,
    routers: () => routers,
    onChange: (callback) => void listeners.push(callback),
    onLedgerChange: (callback) => void ledgerListeners.push(callback),
    others: () => others.size,
    othersHaveNodes: () => othersHaveNodes,
    ledger: () => ledger,
    seenNodes,
    async [Symbol.asyncDispose](): Promise<void> {
      // If this fails, the other routers see after 15 s that it is gone.
      await pool.query("update routers set state = 'stopped' where id = $1", [id]).catch(() => {});
    },
  };
}

/**
 * Throws a `StartError` if another router uses the database. A router that was killed seems live for some seconds, so this
 * function waits for another heartbeat.
 */
export async function requireAlone(self: LiveRouter, id: string, clock: Clock): Promise<void> {
  const untilMs = clock.monotonicMs() + silentMs;
  let seen: ReadonlyMap<string, string> | undefined;
  for (;;) {
    await self.beat();
    const others = self.routers().filter((router) => router.id !== id && ["starting", "ready"].includes(router.state));
    if (others.some((other) => seen && seen.get(other.id) !== String(other.seenAt)))
      throw new StartError(
        "another router uses this database, and each would count limits alone: set limits.store to a Valkey or Redis that all routers share, such as valkey://HOST:PORT, or to memory to accept separate limits",
      );
    if (others.length === 0 || clock.monotonicMs() >= untilMs) return;
    seen = new Map(others.map((other) => [other.id, String(other.seenAt)]));
    await sleep(clock, lookMs);
  }
}

/** Lists the different catalogues of the routers that serve. */
export function cataloguesOf(routers: readonly KnownRouter[]): readonly string[] {
  const serving = routers.filter(({ state }) => state === "ready" || state === "leaving");
  return [...new Set(serving.flatMap(({ catalogue }) => catalogue ?? []))];
}

/** Lists the routers to which nodes may link now. */
export function addressesOf(routers: readonly KnownRouter[]) {
  return routers.flatMap(({ id, state, linkAddress }) =>
    linkAddress !== null && (state === "starting" || state === "ready") ? [{ routerId: id, address: linkAddress }] : [],
  );
}

async function readSeenNodes({ pool }: Database): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ node: string }>(
    "select distinct unnest(nodes) as node from routers where seen_at > now() - interval '1 minute'",
  );
  return new Set(rows.map(({ node }) => node));
}

async function readOthersHaveNodes({ pool }: Database, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from routers where id <> $1 and seen_at > now() - interval '15 seconds'
       and state is distinct from 'stopped' and cardinality(nodes) > 0 limit 1`,
    [id],
  );
  return rowCount === 1;
}

/** Removes earlier rows of this router, because a killed router leaves its row. Returns the ids of the other routers. */
async function replaceEarlier({ pool }: Database, { host, directory }: RouterIdentity): Promise<ReadonlySet<string>> {
  await pool.query("delete from routers where host = $1 and directory = $2", [host, directory]);
  const { rows } = await pool.query<{ id: string }>("select id from routers where state is distinct from 'stopped'");
  return new Set(rows.map(({ id }) => id));
}

/** Writes a heartbeat. Returns its time by the database's clock. */
async function sayFacts(
  { pool }: Database,
  { id, host, directory, version, limitStore }: RouterIdentity,
  { state, linkAddress, dataAddress, runningRequests, catalogue, nodes }: RouterFacts,
  clockAheadMs: number,
): Promise<Temporal.Instant> {
  const { rows } = await pool.query<{ seenAt: Temporal.Instant }>(
    `insert into routers (id, seen_at, started_at, host, directory, version, limit_store,
       state, link_address, data_address, running_requests, clock_ahead_ms, nodes, catalogue)
     values ($1, now(), now(), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (id) do update set seen_at = excluded.seen_at, state = excluded.state,
       link_address = excluded.link_address, data_address = excluded.data_address,
       running_requests = excluded.running_requests, clock_ahead_ms = excluded.clock_ahead_ms, nodes = excluded.nodes,
       catalogue = excluded.catalogue
     returning seen_at as "seenAt"`,
    [
      ...[id, host, directory, version, limitStore],
      ...[state, linkAddress, dataAddress, runningRequests, clockAheadMs, nodes, catalogue],
    ],
  );
  return rows[0]!.seenAt;
}

/** Deletes stopped routers, routers gone for a day, and routers that this one has replaced. Returns the others. */
async function readRouters(
  { pool }: Database,
  linkAddress: string | undefined,
  id: string,
): Promise<readonly KnownRouter[]> {
  await pool.query(
    `delete from routers
     where seen_at < now() - case when state is null or state = 'stopped' then interval '1 minute' else interval '1 day' end
       or (link_address = $1 and id <> $2 and seen_at < now() - interval '15 seconds')`,
    [linkAddress, id],
  );
  const { rows } = await pool.query<KnownRouter>(
    `select id, host, version, started_at as "startedAt", seen_at as "seenAt", link_address as "linkAddress",
       data_address as "dataAddress", running_requests as "runningRequests", clock_ahead_ms as "clockAheadMs",
       limit_store as "limitStore", catalogue,
       case when seen_at > now() - interval '15 seconds' then coalesce(state, 'ready') else 'gone' end as state
     from routers where state is distinct from 'stopped' order by started_at, id`,
  );
  return rows;
}

/**
 * SQL for a text that changes when commits may have been lost: the identity of the database, which a restore replaces, and
 * its timeline, which increases when a standby takes over. Some servers do not report a timeline; then only the identity
 * is used.
 */
const ledgerText = "select id || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) as ledger from ledger_identity";
const identityText = "select id::text as ledger from ledger_identity";

function ledgerReader({ pool }: Database): () => Promise<string> {
  let tellsTimeline = true;
  return async function read(): Promise<string> {
    try {
      const { rows } = await pool.query<{ ledger: string }>(tellsTimeline ? ledgerText : identityText);
      return rows[0]!.ledger;
    } catch (error) {
      if (!tellsTimeline || !isUnsupported(error)) throw error;
      tellsTimeline = false;
      return read();
    }
  };
}

/** Returns whether the error means: no permission, no such function, or not supported. */
function isUnsupported(error: unknown): boolean {
  return ["42501", "42883", "0A000"].includes((error as { code?: string }).code ?? "");
}
