/** The audit log as people search it: by person, object, action and time, youngest first, with the names they know. */
import { sql } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import { viewEntry, type AuditView } from "./audit.ts";

export interface AuditFilter {
  /** A user's id, or `operator`. */
  readonly actor?: string;
  /** The id of a user, a key or the account. */
  readonly object?: string;
  readonly action?: string;
  /** An instant; included. */
  readonly from?: string;
  /** An instant; not included. */
  readonly to?: string;
}

export interface NamedEntry extends Omit<AuditView, "object" | "details"> {
  readonly details: Readonly<Record<string, unknown>>;
  /** The address; null for the operator, and for who is deleted. */
  readonly actorName: string | null;
  readonly object: { readonly kind: string; readonly id: string; readonly name: string | null };
}

/** Entries below the number `before`. `total`: all that match, wherever the page begins. */
export async function auditPage(
  { kysely }: Pick<Database, "kysely">,
  accountId: AccountId,
  filter: AuditFilter,
  page: { readonly limit: number; readonly before?: number },
): Promise<{ readonly items: readonly NamedEntry[]; readonly total: number }> {
  const { actor = null, object = null, action = null, from = null, to = null } = filter;
  const matching = sql<boolean>`l.account_id = ${accountId} and (${actor}::text is null or l.actor = ${actor})
    and (${object}::text is null or split_part(l.object, ' ', 2) = ${object})
    and (${action}::text is null or l.action = ${action})
    and (${from}::timestamptz is null or l.at >= ${from}::timestamptz)
    and (${to}::timestamptz is null or l.at < ${to}::timestamptz)`;
  const { rows } = await sql<Row>`
    select l.*, a.email as actor_name, coalesce(u.email, k.name) as object_name
    from audit_log l
      left join users a on a.id::text = l.actor and a.account_id = l.account_id and a.deleted_at is null
      left join users u on l.object = 'user ' || u.id and u.account_id = l.account_id and u.deleted_at is null
      left join api_keys k on l.object = 'key ' || k.id and k.account_id = l.account_id
    where ${matching} and (${page.before ?? null}::bigint is null or l.number < ${page.before ?? null})
    order by l.number desc limit ${page.limit}`.execute(kysely);
  const counted = await sql<{
    total: number;
  }>`select count(*)::integer as total from audit_log l where ${matching}`.execute(kysely);
  return { items: rows.map(viewNamed), total: counted.rows[0]!.total };
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
