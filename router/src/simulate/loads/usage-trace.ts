/** Reads usage records as a trace of requests: times, tokens, accounts and models, in the order of acceptance. */
import type { Pool } from "pg";
import type { Millicredits } from "@weiche/shared/credits.ts";
import { lowestId } from "../../usage/usage-days.ts";

const pageMax = 5_000;

/** A request without its content. Its times, accounts and models are as recorded. */
interface TracedRequest {
  /** Milliseconds since 1970, from the request id. */
  readonly atMs: number;
  readonly accountId: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

interface TraceQuery {
  /** Milliseconds since 1970. The end is not included. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The last request id of the page before. */
  readonly after?: string | undefined;
}

/**
 * Reads one page. A request with several attempts counts once, with its last attempt. Broken and void attempts
 * count too, because their requests were asked for.
 */
export async function readUsageTrace(pool: Pool, query: TraceQuery, rowsMax = pageMax) {
  const { items, after } = await readPaidTrace(pool, query, rowsMax);
  return {
    items: items.map(({ credits: _credits, msPerToken: _speed, ...request }): TracedRequest => request),
    after,
  };
}

interface PaidRequest extends TracedRequest {
  readonly credits: Millicredits;
  /** The time of the answer from its first token, for each further token. null if it had no further token. */
  readonly msPerToken: number | null;
}

interface PaidRow extends Omit<PaidRequest, "atMs"> {
  readonly id: string;
}

/** The same with what each request cost and how fast its answer was. */
export async function readPaidTrace(pool: Pool, { fromMs, toMs, after }: TraceQuery, rowsMax: number) {
  const { rows } = await pool.query<PaidRow>(
    `select * from (
       select distinct on (request_id) request_id as id, account_id as "accountId", model,
         prompt_tokens as "inputTokens", completion_tokens as "outputTokens", credits,
         (duration_ms - first_token_ms)::float8 / nullif(completion_tokens - 1, 0) as "msPerToken"
       from usage_records where request_id >= $1 and request_id < $2 and ($3::uuid is null or request_id > $3)
       order by request_id, attempt desc) requests
     order by id limit ${rowsMax}`,
    [lowestId(fromMs), lowestId(toMs), after ?? null],
  );
  return {
    items: rows.map(({ id, ...request }): PaidRequest => ({ atMs: acceptedAtMs(id), ...request })),
    /** The place of the next page, or null after the last one. */
    after: rows.length < rowsMax ? null : rows.at(-1)!.id,
  };
}

/** The time in a UUIDv7. */
function acceptedAtMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
