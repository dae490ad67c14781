/**
 * Statements that a client's request waits for: answered or given up within two seconds, on a few connections of their
 * own. Connections may be lost without a word: a statement that gets no answer is sent again on a new one, and all idle
 * connections are made anew, so that the next statement does not wait for what this one has found out.
 */
import {
  Pool,
  type ClientConfig,
  type Connection,
  type PoolClient,
  type QueryConfig,
  type QueryResult,
  type QueryResultRow,
} from "pg";
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import { inTime, isUnavailable } from "./failures.ts";

export interface PromptQueries {
  /** For statements that may run twice. */
  readonly query: <Row extends QueryResultRow>(query: QueryConfig) => Promise<QueryResult<Row>>;
}

const connectionsMax = 3;
const allMsMax = 2_000;
/** For connecting, and for the answer. */
const attemptMsMax = 800;

/** `settings` with the times of the other statements; `lost`: a connection was lost without a word. */
export function openPromptQueries(
  settings: ClientConfig,
  clock: Clock,
  events: { readonly lost: () => void; readonly idleLost: (error: Error) => void },
): PromptQueries & AsyncDisposable {
  const times = {
    connectionTimeoutMillis: attemptMsMax,
    query_timeout: attemptMsMax,
    statement_timeout: allMsMax,
    lock_timeout: allMsMax,
  };
  const pool = new Pool({ ...settings, ...times, max: connectionsMax });
  pool.on("error", events.idleLost);
  pool.on("connect", (client) => client.on("error", () => {})); // who uses it learns of it anyway
  return {
    query: <Row extends QueryResultRow>(query: QueryConfig) =>
      inTime(clock, allMsMax, async () => {
        try {
          return await pool.query<Row>(query);
        } catch (error) {
          if (!isUnavailable(error)) throw error;
          events.lost();
          await renewIdle(pool);
          return pool.query<Row>(query);
        }
      }),
    [Symbol.asyncDispose]: () => within(clock, allMsMax, pool.end()),
  };
}

/**
 * Connections that nobody uses are closed: whoever needs one next gets a new one. Closed hard: the pool would wait for the
 * server's goodbye before it lets somebody who waits have the place.
 */
export async function renewIdle(pool: Pool): Promise<void> {
  const closing = Array.from({ length: pool.idleCount }, async () => {
    const client = (await pool.connect()) as PoolClient & { readonly connection: Connection };
    client.connection.stream.destroy();
    client.release(true);
  });
  await Promise.allSettled(closing);
}
