/**
 * Moves dead keys (revoked or expired) out of the table of keys, so that lists and counts do not grow with them.
 * Their names stay for usage reports, because usage of a key may arrive long after its end.
 */
import { sql, type RawBuilder, type Transaction } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import { inTransaction, instantText, type Database } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";

/** If a user has more dead keys, the oldest are retired. */
export const deadKeysPerUserMax = 100;
/** Each deletion updates the row that counts changes. Within one transaction, each such update is slower than the last. */
const keysPerStep = 200;
const dayMs = 86_400_000;

function isDead(nowMs: number): RawBuilder<boolean> {
  return sql`(revoked_at is not null or expires_at <= ${instantText(nowMs)})`;
}

/** Retires at most 100 of the user's dead keys beyond `deadKeysPerUserMax`. Call it with the user's row locked. */
export async function retireSurplus(transaction: Transaction<Schema>, userId: UserId, nowMs: number): Promise<void> {
  const surplus = sql`
    select id from api_keys where user_id = ${userId} and ${isDead(nowMs)}
    order by created_at desc, id offset ${deadKeysPerUserMax} limit ${deadKeysPerUserMax}`;
  await retire(transaction, surplus, nowMs);
}

/** Retires keys that have been dead for `keepDays`, and each user's dead keys beyond `deadKeysPerUserMax`. */
export async function retireOldKeys(database: Database, nowMs: number, keepDays: number): Promise<void> {
  const dead = isDead(nowMs);
  const oldest = instantText(nowMs - keepDays * dayMs);
  await retireAll(database, sql`${dead} and coalesce(revoked_at, expires_at) <= ${oldest}`, nowMs);
  const { rows } = await sql<{ userId: UserId; youngest: Temporal.Instant }>`
    select many.user_id, youngest.created_at as youngest
    from (select user_id from api_keys where ${dead} group by user_id having count(*) > ${deadKeysPerUserMax}) many
    cross join lateral (select created_at from api_keys where user_id = many.user_id and ${dead}
      order by created_at desc, id offset ${deadKeysPerUserMax} limit 1) youngest`.execute(database.kysely);
  for (const { userId, youngest } of rows) {
    const surplus = sql`user_id = ${userId} and ${dead} and created_at <= ${youngest.toString()}::timestamptz`;
    await retireAll(database, surplus, nowMs);
  }
}

async function retireAll(database: Database, which: RawBuilder<unknown>, nowMs: number): Promise<void> {
  const some = sql`select id from api_keys where ${which} limit ${keysPerStep}`;
  let step = keysPerStep;
  while (step === keysPerStep) step = await inTransaction(database, (transaction) => retire(transaction, some, nowMs));
}

/** `chosen`: a query of ids. Skips rows that another transaction holds. Returns the number of retired keys. */
async function retire(transaction: Transaction<Schema>, chosen: RawBuilder<unknown>, nowMs: number): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    with gone as (
      delete from api_keys where id in (
        select id from api_keys where id in (${chosen}) order by id for update skip locked)
      returning id, account_id, user_id, name, last_four
    ), uses as (delete from key_uses where key_id in (select id from gone))
    , kept as (
      insert into retired_keys select id, account_id, user_id, name, last_four, ${instantText(nowMs)} from gone
    )
    select id from gone`.execute(transaction);
  return rows.length;
}
