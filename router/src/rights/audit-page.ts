/** Searches the audit log by actor, object, action and time, and adds names to ids. */
import { sql } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import { viewEntry, type AuditView } from "./audit.ts";
import { containing } from "./list-page.ts";

export type AuditSort = "at" | "actor" | "action" | "object" | "result";

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

/** Newest first by default. */
export interface AuditPage {
  readonly limit: number;
  readonly offset?: number;
  readonly sort?: AuditSort;
  readonly order?: "asc" | "desc";
}

export interface NamedEntry extends Omit<AuditView, "object" | "details"> {
  readonly details: Readonly<Record<string, unknown>>;
  /** E-mail address; null for the operator and for deleted users. */
  readonly actorName: string | null;
  readonly object: { readonly kind: string; readonly id: string; readonly name: string | null };
}

type Log = Pick<Database, "kysely">;

const orders: Readonly<Record<AuditSort, string>> = {
  at: "number",
  actor: "coalesce(actor_name, actor)",
  action: "action",
  object: "coalesce(object_name, object)",
  result: "result",
};

/** `total`: number of all matching entries, on any page. */
export async function auditPage(
  database: Log,
  accountId: AccountId,
  filter: AuditFilter,
  page: AuditPage,
): Promise<{ readonly items: readonly NamedEntry[]; readonly total: number }> {
  const items = await auditEntries(database, accountId, filter, page);
  const { rows } = await sql<{ total: number }>`
    select count(*)::integer as total from (${matching(accountId, filter)}) m`.execute(database.kysely);
  return { items, total: rows[0]!.total };
}

export async function auditEntries(
  { kysely }: Log,
  accountId: AccountId,
  filter: AuditFilter,
  { limit, offset = 0, sort = "at", order = "desc" }: AuditPage,
): Promise<readonly NamedEntry[]> {
  const { rows } = await sql<Row>`
    select * from (${matching(accountId, filter)}) m
    order by ${sql.raw(`${orders[sort]} ${order}`)}, number desc limit ${limit} offset ${offset}`.execute(kysely);
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

type Row = Parameters<typeof viewEntry>[0] & {
  readonly actorName: string | null;
  readonly objectName: string | null;
};

function viewNamed(row: Row): NamedEntry {
  const { object, details, ...entry } = viewEntry(row);
  const [kind = "", id = ""] = object.split(" ");
  return { ...entry, details: { ...details }, actorName: row.actorName, object: { kind, id, name: row.objectName } };
}
