/**
 * Notices for an account's users in the portal: an event and its facts, which the portal puts into words. Read marks are
 * kept per user. Admins and Owners see all notices of the account. Members see notices about themselves and about the
 * account as a whole.
 */
import { sql, type RawBuilder, type Transaction } from "kysely";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../db/database.ts";
import type { Schema, NoticeKind } from "../db/schema.ts";

/**
 * The newest notices of an account that are kept and listed. Those of the account's key limits alone can be 25 for each
 * user and billing period.
 */
const noticesMax = 10_000;
const noticesPerStep = 5_000;

/**
 * The end of an `insert into notices` whose facts a person can change as often as he likes: the account keeps one notice
 * of the event, which becomes new again.
 */
export const renewsNotice = `on conflict (account_id, kind, event) do update
  set facts = excluded.facts, created_at = excluded.created_at where notices.facts is distinct from excluded.facts`;

interface NewNotice {
  readonly accountId: AccountId;
  readonly kind: NoticeKind;
  /** Identifies the notice within its kind. Each account gets it once. */
  readonly event: string;
  readonly facts: object;
}

/** The reader of the notices. */
interface NoticeViewer {
  readonly accountId: AccountId;
  /** Undefined for the operator, who has no read marks. */
  readonly userId?: UserId;
  readonly seesAll: boolean;
}

/**
 * Lists a page of notices, newest first. The result's `unread` counts the unread notices of all pages. What is solved or
 * told by a later notice counts as read.
 */
export async function listNotices(
  { kysely }: Database,
  viewer: NoticeViewer,
  page: { readonly limit: number; readonly offset?: number; readonly unread?: boolean },
  nowMs: number,
) {
  const { limit, offset = 0, unread = false } = page;
  const { rows } = await sql<Row>`
    with seen as (${visible(viewer, nowMs)})
    select c.total, c.unread, p.* from
      (select count(*) filter (where not ${unread} or not read) as total, count(*) filter (where not read) as unread from seen) c
      left join lateral (
        select * from seen where not ${unread} or not read order by at desc, id desc limit ${limit} offset ${offset}
      ) p on true`.execute(kysely);
  return {
    items: rows.flatMap((row) => (row.id === null ? [] : [viewNotice(row as Row & Shown)])),
    total: Number(rows[0]!.total),
    unread: Number(rows[0]!.unread),
  };
}

/** Marks the notices `ids`, or all, as read. Ignores notices that the viewer may not see. */
export async function markRead(
  { kysely }: Database,
  viewer: NoticeViewer & { readonly userId: UserId },
  ids: readonly string[] | undefined,
  nowMs: number,
): Promise<void> {
  const chosen = ids === undefined ? sql`true` : sql`id = any(${ids}::uuid[])`;
  await sql`
    insert into notice_reads (user_id, notice_id, read_at)
    select ${viewer.userId}::uuid, id, greatest(${instantText(nowMs)}::timestamptz, at) from (${visible(viewer, nowMs)}) seen
    where not read and ${chosen}
    on conflict (user_id, notice_id) do update set read_at = excluded.read_at`.execute(kysely);
}

/** Deletes the notices of each account beyond the newest `noticesMax`, some in each step. */
export async function dropOldNotices({ kysely }: Database): Promise<void> {
  const { rows } = await sql<{ accountId: AccountId }>`
    select account_id from notices group by account_id having count(*) > ${noticesMax}`.execute(kysely);
  for (const { accountId } of rows) {
    const surplus = sql`select id from notices where account_id = ${accountId}
      order by created_at desc, id desc offset ${noticesMax} limit ${noticesPerStep}`;
    let dropped = noticesPerStep;
    while (dropped === noticesPerStep) {
      const { numAffectedRows } = await sql`delete from notices where id in (${surplus})`.execute(kysely);
      dropped = Number(numAffectedRows ?? 0n);
    }
  }
}

/** Adds the notices that do not exist yet and returns their number. */
export async function addNotices(
  transaction: Transaction<Schema>,
  notices: readonly NewNotice[],
  nowMs: number,
): Promise<number> {
  if (notices.length === 0) return 0;
  const inserted = await transaction
    .insertInto("notices")
    .values(
      notices.map((notice) => ({ ...notice, facts: JSON.stringify(notice.facts), createdAt: instantText(nowMs) })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .returning("id")
    .execute();
  return inserted.length;
}

/** SQL condition over `n`, its user `u` and its key `k`: nobody has to do anything about the notice any more. */
export function solvedNotice(nowMs: number): RawBuilder<boolean> {
  const now = sql`${instantText(nowMs)}::timestamptz`;
  const fact = (name: string) => sql`(n.facts ->> ${sql.lit(name)})::timestamptz`;
  const later = sql`exists (select from notices h where h.account_id = n.account_id and h.event = n.event
    and h.kind = any(case n.kind when 'quota-75' then array['quota-90', 'quota-100'] when 'quota-90' then array['quota-100'] end))`;
  const running = (condition: RawBuilder<unknown>) => sql`exists (select from subscriptions s
    where s.account_id = n.account_id and s.started_at <= ${now} and (s.ended_at is null or s.ended_at > ${now}) and ${condition})`;
  const ofQuota = sql`${fact("periodEnd")} <= ${now} or ${later} or not ${running(sql`s.package = n.facts ->> 'package'`)}`;
  const isExhausted = sql`exists (select from accounts a where a.id = n.account_id and a.exhausted_until > ${now})`;
  // A changed limit that is reached again renews the notice.
  const ofLimit = (of: "k" | "u") => sql`coalesce(${sql.ref(`${of}.limit_reached_until`)} <= ${now}, true)
    or (n.facts ->> 'limit')::numeric * 1000 is distinct from ${sql.ref(`${of}.credit_limit`)}`;
  return sql<boolean>`case
    when n.kind in ('quota-75', 'quota-90') then ${ofQuota}
    when n.kind = 'quota-100' then ${ofQuota} or not ${isExhausted}
    when n.kind = 'key-limit' then ${ofLimit("k")}
    when n.kind = 'user-limit' then ${ofLimit("u")}
    when n.kind = 'key-expiring' then k.expires_at <= ${now} or k.expires_at is distinct from ${fact("expiresAt")}
    when n.kind = 'trial-ending' then not ${running(sql`s.state = 'trial' and s.ended_at = ${fact("endsAt")}`)}
    when n.kind = 'package-ending' then not ${running(sql`s.ended_at = ${fact("endsAt")}`)} or exists (
      select from subscriptions f where f.account_id = n.account_id and f.started_at = ${fact("endsAt")})
    else false end`;
}

/** Selects the visible notices: none about a revoked key, and none from before the user was created. */
function visible(
  { accountId, userId = null, seesAll }: { userId?: UserId | null } & Omit<NoticeViewer, "userId">,
  nowMs: number,
): RawBuilder<unknown> {
  return sql`
    select n.id, n.kind, n.created_at as at, n.facts, n.user_id, u.email, n.key_id, k.name as key_name, k.last_four,
      coalesce(r.read_at >= n.created_at, false) or ${solvedNotice(nowMs)} as read
    from (select * from notices
      where account_id = ${accountId} and (${seesAll} or user_id is null or user_id = ${userId}::uuid)
      order by created_at desc, id desc limit ${noticesMax}) n
    left join users u on u.id = n.user_id
    left join api_keys k on k.id = n.key_id
    left join notice_reads r on r.notice_id = n.id and r.user_id = ${userId}::uuid
    where k.revoked_at is null
      and n.created_at >= coalesce((select v.created_at from users v where v.id = ${userId}::uuid), '-infinity')`;
}

interface Shown {
  readonly id: string;
  readonly kind: NoticeKind;
  readonly at: Temporal.Instant;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly userId: UserId | null;
  readonly email: string | null;
  readonly keyId: KeyId | null;
  readonly keyName: string | null;
  readonly lastFour: string | null;
  readonly read: boolean;
}

type Row = { readonly total: bigint; readonly unread: bigint } & (Shown | { readonly id: null });

/** `user`, `key`: the subject of the notice; both are null for the whole account. */
function viewNotice({ id, kind, at, read, facts, userId, email, keyId, keyName, lastFour }: Shown) {
  return {
    id,
    kind,
    at: at.toString(),
    read,
    user: userId === null ? null : { id: userId, email: email! },
    key: keyId === null ? null : { id: keyId, name: keyName!, lastFour: lastFour! },
    facts,
  };
}
