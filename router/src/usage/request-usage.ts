/** Reads what the database knows of one request: usage records, committed or set aside, and that it got no answer. */
import type { Pool } from "pg";
import { formatCredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { RequestId, UserId } from "@weiche/shared/ids.ts";
import type { RefusalCode } from "./refusal-codes.ts";

/** The record of one attempt. */
export interface RequestUsage {
  readonly requestId: string;
  readonly attempt: number;
  readonly accountId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly model: string;
  readonly node: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly estimatedTokens: number;
  readonly factor: string;
  readonly credits: string;
  readonly outcome: string;
  readonly durationSeconds: number;
  readonly firstTokenSeconds: number | null;
}

export interface UnansweredRow {
  readonly requestId: string;
  readonly accountId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly model: string | null;
  readonly code: RefusalCode | null;
  readonly status: number;
  readonly seconds: number;
  readonly requests: number;
}

interface SetAsideUsage {
  readonly requestId: string;
  readonly attempt: number;
  readonly node: string;
  readonly reason: string;
  readonly detail: string | null;
}

/** More rows than one request has attempts, because an id prefix may match several requests. */
const rowsMax = 20;

/** Reads all requests whose id begins with `idPrefix`, the beginning of a UUID. */
export async function readRequestUsage(pool: Pool, idPrefix: string) {
  const end = (digit: string) =>
    idPrefix + "00000000-0000-0000-0000-000000000000".replaceAll("0", digit).slice(idPrefix.length);
  const [used, aside, unanswered] = await Promise.all([
    pool.query<Omit<RequestUsage, "factor" | "credits"> & Record<"factor" | "credits", Millicredits>>(
      `select request_id as "requestId", attempt, account_id as "accountId", user_id as "userId", key_id as "keyId",
         model, node, prompt_tokens as "promptTokens", completion_tokens as "completionTokens",
         estimated_tokens as "estimatedTokens", factor, credits, outcome,
         duration_ms / 1000.0::float8 as "durationSeconds", first_token_ms / 1000.0::float8 as "firstTokenSeconds"
       from usage_records where request_id between $1 and $2 order by request_id desc, attempt limit ${rowsMax}`,
      [end("0"), end("f")],
    ),
    pool.query<SetAsideUsage>(
      `select request_id as "requestId", attempt::integer, node, reason, detail
       from usage_refused where starts_with(request_id, $1) order by request_id desc, attempt limit ${rowsMax}`,
      [idPrefix],
    ),
    pool.query<UnansweredRow>(
      `select request_id as "requestId", account_id as "accountId", user_id as "userId", key_id as "keyId", model, code,
         status, duration_ms / 1000.0::float8 as seconds, requests
       from unanswered_requests where request_id between $1 and $2 order by request_id desc limit ${rowsMax}`,
      [end("0"), end("f")],
    ),
  ]);
  const usage: readonly RequestUsage[] = used.rows.map((row) => ({
    ...row,
    factor: formatCredits(row.factor),
    credits: formatCredits(row.credits),
  }));
  return {
    usage,
    setAside: aside.rows as readonly SetAsideUsage[],
    unanswered: unanswered.rows as readonly UnansweredRow[],
  };
}

/** Reads what an answer of a person's own playground cost; null until its record has been committed. */
export async function readChatCost(pool: Pool, requestId: RequestId, userId: UserId) {
  // An attempt that is void or broken costs nothing, and another one may have answered.
  const { rows } = await pool.query<{ promptTokens: number; completionTokens: number; credits: Millicredits }>(
    `select prompt_tokens as "promptTokens", completion_tokens as "completionTokens", credits from usage_records
     where request_id = $1 and user_id = $2 and key_id = $2 and outcome not in ('broken', 'void')`,
    [requestId, userId],
  );
  return rows[0] ? { ...rows[0], credits: formatCredits(rows[0].credits) } : null;
}
