/**
 * Usage records that are acknowledged but not billed, each with the reason. An operator can list them and bill them by
 * hand. They are kept as long as usage records, at most 10,000 per node.
 */
import type { Pool } from "pg";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { SetAside } from "./usage-check.ts";
import type { CheckedRecord, NodeRecord } from "./usage-rows.ts";

export interface SetAsideRecord extends NodeRecord {
  readonly setAside: SetAside;
}

/** A record that failed the checks of the protocol. It contains only numbers and ids, so operators may see it whole. */
export interface UnreadableRecord {
  readonly reason: string;
  readonly record: Readonly<Record<string, string | number | undefined>>;
}

const keptPerNodeMax = 10_000;
const textMax = 64;
const detailMax = 200;

/** Makes a record of the readable fields. */
export function unreadableRecord(node: NodeId, { reason, record }: UnreadableRecord): SetAsideRecord {
  const text = (name: string) => String(record[name] ?? "");
  const number = (name: string) => Number(record[name] ?? 0);
  return {
    node,
    setAside: { reason: "unreadable", detail: reason },
    record: {
      requestId: asId(text("requestId")),
      attempt: number("attempt"),
      accountId: asId(text("accountId")),
      userId: asId(text("userId")),
      keyId: asId(text("keyId")),
      model: asId(text("model")),
      factor: millicredits(BigInt(text("factorMillicredits"))),
      promptTokens: number("promptTokens"),
      completionTokens: number("completionTokens"),
      source: text("source") as CheckedRecord["source"],
      outcome: text("outcome") as CheckedRecord["outcome"],
      durationMs: 0,
    },
  };
}

/** Stores records, each once per node, request, attempt and reason. */
export async function storeSetAside(pool: Pool, records: readonly SetAsideRecord[], nowMs: number): Promise<void> {
  const text = (value: unknown) => plain(value, textMax);
  const rows = records.map(({ node, record, setAside }) => ({
    node: text(node),
    request_id: text(record.requestId),
    attempt: Math.trunc(record.attempt),
    reason: text(setAside.reason),
    detail: setAside.detail === undefined ? null : plain(setAside.detail, detailMax),
    account_id: text(record.accountId),
    user_id: text(record.userId),
    key_id: text(record.keyId),
    model: text(record.model),
    factor: text(record.factor),
    prompt_tokens: text(record.promptTokens),
    completion_tokens: text(record.completionTokens),
    source: text(record.source),
    outcome: text(record.outcome),
    refused_at: instantText(nowMs),
  }));
  await pool.query(
    `insert into usage_refused
     with given as (select * from jsonb_populate_recordset(null::usage_refused, $1)),
       crowded as (select node from usage_refused where node in (select node from given)
         group by node having count(*) >= ${keptPerNodeMax})
     select * from given where node not in (select node from crowded)
     on conflict do nothing`,
    [JSON.stringify(rows)],
  );
}

type Texts = "at" | "node" | "requestId" | "reason" | "accountId" | "userId" | "keyId" | "model" | "factor";
type Said = "promptTokens" | "completionTokens" | "source" | "outcome";
type RefusedRow = Readonly<Record<Texts | Said, string>> & { readonly attempt: number; readonly detail: string | null };

/** Lists records, newest first. Counts are texts, because a node may have sent values that are not numbers. */
export async function listSetAside(pool: Pool, { limit, node }: { readonly limit: number; readonly node?: string }) {
  const { rows } = await pool.query<RefusedRow>(
    `select to_char(refused_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, node, request_id as "requestId",
       attempt::float8 as attempt, reason, detail, account_id as "accountId", user_id as "userId", key_id as "keyId", model,
       factor::text, prompt_tokens::text as "promptTokens", completion_tokens::text as "completionTokens", source, outcome
     from usage_refused where $2::text is null or node = $2
     order by refused_at desc, node, request_id, attempt limit $1`,
    [limit, node ?? null],
  );
  return rows;
}

export async function forgetSetAside(pool: Pool, beforeMs: number): Promise<void> {
  await pool.query("delete from usage_refused where refused_at < $1", [instantText(beforeMs)]);
}

/** Replaces control characters and limits the length, because nodes may send any text. */
function plain(value: unknown, max: number): string {
  return String(value).replace(/\p{C}/gu, "?").slice(0, max);
}
