/**
 * Mails notices to those whom they concern: quotas to Owners and Admins, packages to Owners, limits and keys to their
 * holder. A row per notice and person is taken before its mail is sent, so that no mail is sent twice, by whatever router.
 * A router that dies while it sends loses that mail.
 */
import { sql } from "kysely";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { instantText, type Database } from "../db/database.ts";
import type { Language } from "../db/schema.ts";
import type { Mail } from "../mail/mail.ts";
import { noticeLetter, topicOf, type MailedKind } from "../mail/notice-letters.ts";
import { solvedNotice } from "./notices.ts";

export const noticeMailsEveryMs = 30_000;
/** Older notices are not mailed, such as those from before this version. */
const freshMs = 6 * 3_600_000;
const mailsAtOnce = 20;
const failuresMax = 10;

interface DueMail {
  readonly noticeId: string;
  readonly userId: string;
  readonly email: string;
  readonly language: Language | null;
  readonly kind: MailedKind;
  readonly accountName: string;
  readonly keyName: string | null;
  readonly facts: { readonly periodEnd?: string; readonly expiresAt?: string; readonly endsAt?: string };
}

/** Returns how many mails were sent. */
export async function mailNotices(
  database: Database,
  clock: Clock,
  mail: Pick<Mail, "send">,
  portalUrl: string,
): Promise<number> {
  const { kysely } = database;
  await addDue(database, clock.now());
  const due = await take(database, clock.now());
  let sent = 0;
  for (const { noticeId, userId, email, language, facts, ...told } of due) {
    const atMs = Date.parse(facts.periodEnd ?? facts.expiresAt ?? facts.endsAt ?? "");
    if (await mail.send(email, noticeLetter(language, { ...told, atMs, portalUrl }))) sent++;
    else
      await sql`update notice_mails set taken_at = null, failures = failures + 1
        where notice_id = ${noticeId} and user_id = ${userId}`.execute(kysely);
  }
  return sent;
}

/** Notes who gets which notice. What is solved already, or told by a higher level, is not mailed. */
async function addDue({ kysely }: Database, nowMs: number): Promise<void> {
  const kinds = Object.keys(topicOf);
  const topic = sql`(${JSON.stringify(topicOf)}::jsonb ->> n.kind)`;
  await sql`
    insert into notice_mails (notice_id, user_id)
    select n.id, m.id from notices n
      left join users u on u.id = n.user_id left join api_keys k on k.id = n.key_id
      join users m on m.account_id = n.account_id and m.deleted_at is null and not m.blocked
    where n.kind = any(${kinds}::text[]) and n.created_at > ${instantText(nowMs - freshMs)} and k.revoked_at is null
      and case when n.user_id is not null then m.id = n.user_id
        when ${topic} = 'package' then m.role = 'owner' else m.role in ('owner', 'admin') end
      and not ${topic} = any(m.mails_off)
      and exists (select from credentials c where c.user_id = m.id)
      and not ${solvedNotice(nowMs)}
    on conflict do nothing`.execute(kysely);
}

async function take({ kysely }: Database, nowMs: number): Promise<readonly DueMail[]> {
  const { rows } = await sql<DueMail>`
    with due as (
      select d.notice_id, d.user_id from notice_mails d join notices n on n.id = d.notice_id
      where d.taken_at is null and d.failures < ${failuresMax} and n.created_at > ${instantText(nowMs - freshMs)}
      order by d.failures, d.notice_id, d.user_id limit ${mailsAtOnce} for update of d skip locked
    ), taken as (
      update notice_mails t set taken_at = ${instantText(nowMs)} from due
      where t.notice_id = due.notice_id and t.user_id = due.user_id returning t.notice_id, t.user_id
    )
    select t.notice_id, t.user_id, m.email, m.language, n.kind, a.name as account_name, k.name as key_name, n.facts
    from taken t join notices n on n.id = t.notice_id join users m on m.id = t.user_id
      join accounts a on a.id = n.account_id left join api_keys k on k.id = n.key_id`.execute(kysely);
  return rows;
}
