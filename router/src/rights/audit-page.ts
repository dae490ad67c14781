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
  /** Only entries above this number. */
  readonly after?: number;
  /** Matches this text in the name of actor or object, the action, the result or the source. */
  readonly search?: string;
}

const orders = {
  at: "number",
  actor: "coalesce(actor_name, actor)",
  action: "action",
  object: "coalesce(object_name, object)",
  result: "result",
} as const;

/** `searchedMax`: searches only this many entries, the newest of the requested time; null searches all. */
export async function auditPage(
  database: Database,
  accountId: AccountId,
  filter: AuditFilter,
  page: Page<keyof typeof orders>,
  searchedMax: number | null,
) {
  const found = matching(accountId, filter, searchedMax);
  const { rows, total } = await readPage<Row>(database, found, page, orders[page.sort], "number desc");
  return { items: rows.map(viewNamed), total, isCut: await hasMore(database, accountId, filter, searchedMax) };
}

async function hasMore({ kysely }: Database, accountId: AccountId, filter: AuditFilter, searchedMax: number | null) {
  if (searchedMax === null) return false;
  const { rows } = await sql`${newest(accountId, filter, 1)} offset ${searchedMax}`.execute(kysely);
  return rows.length > 0;
}

/**
 * Lists the matching entries among the newest `among` ones below `before`, newest first, so that a step reads a bounded
 * part. `next` is the `before` of the next step. It is undefined after the last one.
 */
export async function auditStep({ kysely }: Database, accountId: AccountId, filter: AuditFilter, among: number) {
  const { before } = filter;
  const entries = kysely
    .selectFrom("auditLog")
    .select("number")
    .where("accountId", "=", accountId)
    .$if(before !== undefined, (query) => query.where("number", "<", BigInt(before!)));
  const last = await entries.orderBy("number", "desc").offset(among).limit(1).executeTakeFirst();
  const after = last && Number(last.number);
  const found = matching(accountId, { ...filter, after }, null);
  const { rows } = await sql<Row>`${found} order by number desc`.execute(kysely);
  return { entries: rows.map(viewNamed), next: after === undefined ? undefined : after + 1 };
}

function newest(accountId: AccountId, filter: AuditFilter, limit: number | null) {
  const [from, to] = [filter.from ?? null, filter.to ?? null];
  const [before, after] = [filter.before ?? null, filter.after ?? null];
  return sql`
    select * from audit_log where account_id = ${accountId}
      and (${from}::timestamptz is null or at >= ${from}::timestamptz)
      and (${to}::timestamptz is null or at < ${to}::timestamptz)
      and (${before}::bigint is null or number < ${before}) and (${after}::bigint is null or number > ${after})
    ${limit === null ? sql`` : sql`order by at desc, number desc limit ${limit}`}`;
}

function matching(accountId: AccountId, filter: AuditFilter, searchedMax: number | null) {
  const { actor = null, object = null, action = null, search } = filter;
  return sql`
    select l.*, ${personText("a")} as actor_name, coalesce(${personText("u")}, k.name) as object_name
    from (${newest(accountId, filter, searchedMax)}) l
      left join users a on a.id = case when l.actor ~ '^[0-9a-f-]{36}$' then l.actor::uuid end and a.account_id = l.account_id and a.deleted_at is null
      left join users u on u.id = ${idIn("user")} and u.account_id = l.account_id and u.deleted_at is null
      left join known_keys k on k.id = ${idIn("key")} and k.account_id = l.account_id
    where (${actor}::text is null or l.actor = ${actor})
      and (${object}::text is null or split_part(l.object, ' ', 2) = ${object})
      and (${action}::text is null or l.action = ${action})
      and ${containing(search, "concat_ws(' ', l.actor, a.name, a.email, u.name, u.email, k.name, l.action, l.result, l.source)")}`;
}

/** SQL for what a user is called: the e-mail address, after the name if there is one. */
function personText(table: "a" | "u") {
  return sql.raw(`coalesce(${table}.name || ' (' || ${table}.email || ')', ${table}.email)`);
}

/** SQL for the id of an entry's object if it is of this kind, else null. The cast to uuid lets the join use the index. */
function idIn(kind: "user" | "key") {
  return sql`case when l.object like ${`${kind} %`} then substr(l.object, ${kind.length + 2})::uuid end`;
}

type Row = Selectable<Schema["auditLog"]> & { readonly actorName: string | null; readonly objectName: string | null };

export type NamedEntry = ReturnType<typeof viewNamed>;

/** A user's name is the e-mail address; it is null for the operator and for deleted users. */
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
