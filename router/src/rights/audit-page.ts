/** Searches the audit log by actor, object, action and time, and adds names to ids. */
import { sql, type Selectable } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { containing, readPage, type Page } from "./list-page.ts";

export interface AuditFilter {
  /** A user's id, or `operator`. */
  readonly actor?: string;
  /** The id of a user, a key or the account. */
  readonly object?: string;
  readonly action?: string;
  /** An instant, inclusive. */
  readonly from?: string;
  /** An instant, exclusive. */
  readonly to?: string;
  /** Only entries below this number. */
  readonly before?: number;
  /** Text in the name of the actor or object, in the action, the result or the source. */
  readonly search?: string;
}

type Log = Pick<Database, "kysely">;

const orders = {
  at: "number",
  actor: "coalesce(actor_name, actor)",
  action: "action",
  object: "coalesce(object_name, object)",
  result: "result",
} as const;

export async function auditPage(
  database: Log,
  accountId: AccountId,
  filter: AuditFilter,
  page: Page<keyof typeof orders>,
) {
  const found = matching(accountId, filter);
  const { rows, total } = await readPage<Row>(database, found, page, orders[page.sort], "number desc");
  return { items: rows.map(viewNamed), total };
}

/** Newest first. */
export async function auditEntries({ kysely }: Log, accountId: AccountId, filter: AuditFilter, limit: number) {
  const { rows } = await sql<Row>`${matching(accountId, filter)} order by number desc limit ${limit}`.execute(kysely);
  return rows.map(viewNamed);
}

function matching(accountId: AccountId, filter: AuditFilter) {
  const { actor = null, object = null, action = null, from = null, to = null, before = null, search } = filter;
  return sql`
    select l.*, a.email as actor_name, coalesce(u.email, k.name) as object_name
    from audit_log l
      left join users a on a.id::text = l.actor and a.account_id = l.account_id and a.deleted_at is null
      left join users u on l.object = 'user ' || u.id and u.account_id = l.account_id and u.deleted_at is null
      left join api_keys k on l.object = 'key ' || k.id and k.account_id = l.account_id
    where l.account_id = ${accountId} and (${actor}::text is null or l.actor = ${actor})
      and (${object}::text is null or split_part(l.object, ' ', 2) = ${object})
      and (${action}::text is null or l.action = ${action})
      and (${from}::timestamptz is null or l.at >= ${from}::timestamptz)
      and (${to}::timestamptz is null or l.at < ${to}::timestamptz)
      and (${before}::bigint is null or l.number < ${before})
      and ${containing(search, "concat_ws(' ', l.actor, a.email, u.email, k.name, l.action, l.result, l.source)")}`;
}

type Row = Selectable<Schema["auditLog"]> & { readonly actorName: string | null; readonly objectName: string | null };

export type NamedEntry = ReturnType<typeof viewNamed>;

/** Names (e-mail addresses of users) are null for the operator and for deleted users. */
function viewNamed(row: Row) {
  const { actor, actorName, source, action, objectName, result } = row;
  const [kind = "", id = ""] = row.object.split(" ");
  return {
    number: Number(row.number),
    at: row.at.toString(),
    actor,
    actorName,
    source,
    action,
    object: { kind, id, name: objectName },
    result,
    details: JSON.parse(row.details) as Readonly<Record<string, unknown>>,
  };
}
