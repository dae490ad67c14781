/**
 * Statements on the path of a client's request: they succeed or fail within 2 s, on a few separate connections. A
 * connection may be dead: a statement without an answer is repeated on a new one, and all idle connections are
 * replaced, so that the next statement does not time out as well.
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
  /** For idempotent statements: they may run twice. */
  readonly query: <Row extends QueryResultRow>(query: QueryConfig) => Promise<QueryResult<Row>>;
}

const connectionsMax = 3;
const allMsMax = 2_000;
/** Timeout of connecting, and of the answer. */
const attemptMsMax = 800;

/** `lost`: called when a connection gave no answer; `idleLost`: when an idle one broke. */
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
  pool.on("connect", (client) => client.on("error", () => {})); // its user gets the error anyway
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
 * Closes idle connections, so that the next statement opens a new one. Destroys their sockets, since the pool would
 * wait for the server's reply before it frees their places.
 */
export async function renewIdle(pool: Pool): Promise<void> {
  const closing = Array.from({ length: pool.idleCount }, async () => {
    const client = (await pool.connect()) as PoolClient & { readonly connection: Connection };
    client.connection.stream.destroy();
    client.release(true);
  });
  await Promise.allSettled(closing);
}
