/** Notices of keys that expire, and of trials and cancelled packages that end, within a week. */
import type { Pool } from "pg";
import { instantText } from "../db/database.ts";
import { renewsNotice } from "./notices.ts";

const noticeDays = 7;

/** Adds notices for all accounts and returns the number of new ones. */
export async function noticeWhatIsDue(pool: Pool, nowMs: number): Promise<number> {
  const values = [instantText(nowMs), instantText(nowMs + noticeDays * 86_400_000)];
  let added = 0;
  for (const text of [expiringKeys, endingTrials, endingPackages])
    added += (await pool.query({ text, values })).rowCount ?? 0;
  return added;
}

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint`;
const isoText = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** A key whose whole life is at most a week gets no notice. A changed expiry renews the notice. */
const expiringKeys = `
  insert into notices (account_id, kind, event, user_id, key_id, facts, created_at)
  select account_id, 'key-expiring', id, user_id, id,
    jsonb_build_object('expiresAt', ${isoText("expires_at")}), $1::timestamptz
  from api_keys
  where revoked_at is null and expires_at > $1 and expires_at <= $2
    and expires_at - created_at > interval '${noticeDays} days'
  ${renewsNotice}`;

const endingTrials = `
  insert into notices (account_id, kind, event, facts, created_at)
  select account_id, 'trial-ending', ${epochMs("ended_at")}::text, jsonb_build_object('endsAt', ${isoText("ended_at")}),
    $1::timestamptz
  from subscriptions
  where state = 'trial' and started_at <= $1 and ended_at > $1 and ended_at <= $2
  on conflict do nothing`;

/** A package that follows another one at its end, such as after a downgrade, is no end. */
const endingPackages = `
  insert into notices (account_id, kind, event, facts, created_at)
  select account_id, 'package-ending', ${epochMs("ended_at")}::text,
    jsonb_build_object('endsAt', ${isoText("ended_at")}, 'package', package), $1::timestamptz
  from subscriptions s
  where state = 'active' and started_at <= $1 and ended_at > $1 and ended_at <= $2
    and not exists (select from subscriptions f where f.account_id = s.account_id and f.started_at = s.ended_at)
  on conflict do nothing`;
