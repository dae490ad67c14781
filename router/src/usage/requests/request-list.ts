/**
 * Lists single requests, newest first, from two tables: usage records, and requests that got no answer. A list has steps,
 * each from a cursor on. A step reads a bounded part of both tables, whatever it searches.
 */
import { sql, type RawBuilder } from "kysely";
import { formatCredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import type { RequestOutcome } from "@weiche/shared/usage-record.ts";
import type { Database } from "../../db/database.ts";
import type { RefusalCode } from "../refusal-codes.ts";
import { lowestId } from "../usage-days.ts";
import type { ListedOutcome } from "./outcomes.ts";

export interface RequestFilter {
  /** Undefined means all accounts. */
  readonly accountId?: AccountId | undefined;
  readonly userId?: UserId | undefined;
  readonly keyId?: KeyId | undefined;
  readonly model?: string | undefined;
  readonly node?: string | undefined;
  readonly outcome?: ListedOutcome | undefined;
  /** The code of its refusal. */
  readonly code?: string | undefined;
  /** Accepted at this time or later, in ms. */
  readonly fromMs: number;
  /** Accepted before this time, in ms. */
  readonly toMs: number;
}

interface StepSize {
  readonly limit: number;
  /** Only requests with lower ids. */
  readonly before?: string | undefined;
  /** The rows of each table that the step reads at most. */
  readonly rowsMax?: number;
}

export interface ListedRequest {
  readonly requestId: string;
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
  readonly model: string | null;
  readonly outcome: ListedOutcome;
  /** null if no status was sent, or if it is not known. */
  readonly status: number | null;
  /** Why it was refused. */
  readonly code: RefusalCode | null;
  /** How many requests the row stands for. */
  readonly requests: number;
  /** The parts of its usage record are null if there is none. */
  readonly node: string | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly credits: string | null;
  readonly firstTokenSeconds: number | null;
  readonly seconds: number;
}

interface Step {
  readonly items: readonly ListedRequest[];
  /** `before` of the next step. Undefined after the last one. */
  readonly next: string | undefined;
}

const rowsReadMax = 50_000;

/** Lists at most `limit` requests. A step may find none although a later one finds some. */
export async function readRequests(database: Database, filter: RequestFilter, size: StepSize): Promise<Step> {
  const { limit, before, rowsMax = rowsReadMax } = size;
  const [from, highest] = [lowestId(filter.fromMs), lowestId(filter.toMs)];
  const range: Range = { from, to: before !== undefined && before < highest ? before : highest, limit, rowsMax };
  const [used, unanswered] = await Promise.all([
    readPart(database, usageRecords(filter, range), range),
    readPart(database, unansweredRequests(filter, range), range),
  ]);
  const end = used.end > unanswered.end ? used.end : unanswered.end;
  const found = [...used.rows, ...unanswered.rows]
    .filter(({ requestId }) => requestId >= end)
    .toSorted((a, b) => (a.requestId < b.requestId ? 1 : -1));
  const items = found.slice(0, limit);
  const next = found.length > limit ? items.at(-1)!.requestId : end > from ? end : undefined;
  return { items: items.map(viewListed), next };
}

interface Range {
  readonly from: string;
  readonly to: string;
  readonly limit: number;
  readonly rowsMax: number;
}

/** A table with conditions, as SQL. The alias of the table is `t`. */
interface Source {
  readonly table: RawBuilder<unknown>;
  readonly columns: RawBuilder<unknown>;
  readonly join: RawBuilder<unknown>;
  /** Conditions for which there is an index. */
  readonly found: readonly RawBuilder<unknown>[];
  /** Conditions that each row is checked for. */
  readonly checked: readonly RawBuilder<unknown>[];
}

/** Reads the newest matching rows of a range, completely down to the id `end`. */
async function readPart(
  { kysely }: Database,
  source: Source | undefined,
  { from, to, limit, rowsMax }: Range,
): Promise<{ readonly rows: readonly Row[]; readonly end: string }> {
  if (!source) return { rows: [], end: from };
  const { table, columns, join, found, checked } = source;
  const newest = sql`from ${table} where ${all([sql`request_id >= ${from} and request_id < ${to}`, ...found])}
    order by request_id desc`;
  const { rows } = await sql<Row>`
    select ${columns} from (select * ${newest} limit ${rowsMax}) t ${join}
    where ${all(checked)} order by t.request_id desc limit ${limit + 1}`.execute(kysely);
  if (rows.length > limit) return { rows, end: rows.at(-1)!.requestId };
  const last = await sql<Pick<Row, "requestId">>`
    select request_id ${newest} offset ${rowsMax - 1} limit 1`.execute(kysely);
  return { rows, end: last.rows[0]?.requestId ?? from };
}

function all(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return sql.join([sql`true`, ...conditions], sql` and `);
}

const outcomesOfRecords = {
  finished: "answered",
  "client-ended": "client-gone",
  "limit-ended": "timeout",
  broken: "broken",
  void: "broken",
} as const satisfies Record<RequestOutcome, ListedOutcome>;

/** Records of requests that got an answer, or a part of one. Of the attempts of a request, the last one. */
function usageRecords(filter: RequestFilter, { from, to }: Range): Source | undefined {
  const { outcome, code } = filter;
  const names = Object.keys(outcomesOfRecords) as RequestOutcome[];
  const outcomes = names.filter((name) => outcome === undefined || outcomesOfRecords[name] === outcome);
  if (code !== undefined || outcomes.length === 0) return undefined;
  return {
    table: sql`usage_records`,
    columns: sql`t.request_id, t.account_id, t.user_id, t.key_id, t.model, t.node, t.prompt_tokens, t.completion_tokens,
      t.credits, t.first_token_ms, t.duration_ms, t.outcome as record`,
    join: sql``,
    found: found(filter),
    checked: [
      ...checked(filter, sql`t.node`),
      sql`t.outcome = any(${outcomes})`,
      // As a comparison of a value, so that it is looked up row by row, until the page is full.
      sql`(select 1 from unanswered_requests a where a.request_id = t.request_id) is null`,
      sql`(t.outcome <> 'void' or (select max(attempt) from usage_records v
        where v.request_id = t.request_id and v.request_id >= ${from} and v.request_id < ${to}) = t.attempt)`,
    ],
  };
}

/** Requests without an answer. Those that were billed anyway have a record. */
function unansweredRequests(filter: RequestFilter, { from, to }: Range): Source | undefined {
  const { outcome, code } = filter;
  if (outcome !== undefined && outcome !== "refused" && outcome !== "client-gone") return undefined;
  return {
    table: sql`unanswered_requests`,
    columns: sql`t.request_id, t.account_id, t.user_id, t.key_id, t.model, r.node, r.prompt_tokens, r.completion_tokens,
      r.credits, r.first_token_ms, t.duration_ms, t.code, t.status, t.requests`,
    join: sql`left join lateral (select * from usage_records u
      where u.request_id = t.request_id and u.request_id >= ${from} and u.request_id < ${to}
      order by u.attempt desc limit 1) r on true`,
    found: found(filter),
    checked: [
      ...checked(filter, sql`r.node`),
      ...(code === undefined ? [] : [sql`t.code = ${code}`]),
      ...(outcome === undefined ? [] : [outcome === "refused" ? sql`t.code is not null` : sql`t.code is null`]),
    ],
  };
}

function found({ accountId, userId }: RequestFilter): RawBuilder<unknown>[] {
  return [
    ...(accountId === undefined ? [] : [sql`account_id = ${accountId}`]),
    ...(userId === undefined ? [] : [sql`user_id = ${userId}`]),
  ];
}

function checked({ keyId, model, node }: RequestFilter, nodeColumn: RawBuilder<unknown>): RawBuilder<unknown>[] {
  return [
    ...(keyId === undefined ? [] : [sql`t.key_id = ${keyId}`]),
    ...(model === undefined ? [] : [sql`t.model = ${model}`]),
    ...(node === undefined ? [] : [sql`${nodeColumn} = ${node}`]),
  ];
}

interface Row {
  readonly requestId: string;
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
  readonly model: string | null;
  readonly node: string | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly credits: Millicredits | null;
  readonly firstTokenMs: number | null;
  readonly durationMs: number;
  /** The outcome of its usage record. Undefined if the request is in the other table. */
  readonly record?: RequestOutcome;
  readonly code?: RefusalCode | null;
  readonly status?: number;
  readonly requests?: number;
}

function viewListed({
  record,
  credits,
  code,
  status,
  requests = 1,
  firstTokenMs,
  durationMs,
  ...row
}: Row): ListedRequest {
  const outcome = record ? outcomesOfRecords[record] : code ? "refused" : "client-gone";
  return {
    ...row,
    outcome,
    status: outcome === "answered" ? 200 : status || null,
    code: code ?? null,
    requests,
    node: row.node || null,
    credits: credits === null ? null : formatCredits(credits),
    firstTokenSeconds: firstTokenMs === null ? null : firstTokenMs / 1_000,
    seconds: durationMs / 1_000,
  };
}
