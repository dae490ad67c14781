/**
 * Runs statements that must not wait behind others, on a few separate connections. They succeed or fail within a short
 * time. A connection may be dead: a statement without an answer is repeated on a new one, and all idle connections are
 * replaced, so that the next statement does not time out too.
 */
import type { QueryConfig, QueryResult, QueryResultRow } from "pg";
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import type { ConnectionSettings } from "./client.ts";
import { inTime, isUnavailable } from "./failures.ts";
import { openPool, renewIdle, useOf, type PoolUse } from "./pool.ts";

export interface PromptQueries {
  /** Runs a statement, possibly twice. The statement must be idempotent. */
  readonly query: <Row extends QueryResultRow>(query: QueryConfig) => Promise<QueryResult<Row>>;
}

interface OpenPromptQueries extends PromptQueries, AsyncDisposable {
  readonly use: () => PoolUse;
}

interface PromptLimits {
  readonly connectionsMax: number;
  /** Timeout of connecting and of the answer, each. */
  readonly attemptMsMax: number;
  /** Timeout of both attempts together. */
  readonly allMsMax: number;
}

/** Limits of statements for clients' requests. */
const requestLimits: PromptLimits = { connectionsMax: 3, attemptMsMax: 800, allMsMax: 2_000 };

/** `lost` is called when a connection gave no answer, `idleLost` when an idle connection broke. */
export function openPromptQueries(
  connection: ConnectionSettings,
  clock: Clock,
  events: { readonly lost: () => void; readonly idleLost: (error: Error) => void },
  { connectionsMax, attemptMsMax, allMsMax } = requestLimits,
): OpenPromptQueries {
  const times = {
    connectionTimeoutMillis: attemptMsMax,
    query_timeout: attemptMsMax,
    statement_timeout: allMsMax,
    lock_timeout: allMsMax,
  };
  const pool = openPool({ ...connection, ...times, keepAlive: true, max: connectionsMax }, events.idleLost);
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
    use: () => useOf(pool),
    [Symbol.asyncDispose]: () => within(clock, allMsMax, pool.end()),
  };
}
