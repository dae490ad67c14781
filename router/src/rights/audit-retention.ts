/**
 * Removes audit entries older than `retention.auditDays` from the beginning of each chain. A checkpoint keeps the
 * number and hash of the last removed entry, so that the rest of the chain can still be verified.
 */
import { sql } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import { inTransaction, instantText, type Database } from "../db/database.ts";

const dayMs = 86_400_000;
const entriesPerStep = 5_000;

/** Returns the number of removed entries. */
export async function removeOldAudit(database: Database, nowMs: number, keepDays: number): Promise<number> {
  const oldest = instantText(nowMs - keepDays * dayMs);
  const { rows } = await database.pool.query<{ id: AccountId }>(
    "select distinct account_id as id from audit_log where at < $1 order by 1",
    [oldest],
  );
  let removed = 0;
  for (const { id } of rows)
    for (let step = entriesPerStep; step === entriesPerStep; removed += step)
      step = await removeFrom(database, id, oldest, nowMs);
  return removed;
}

/**
 * Removes the oldest entries up to the first one to keep. If a clock was set back, old entries behind that entry stay.
 */
function removeFrom(database: Database, accountId: AccountId, oldest: string, nowMs: number): Promise<number> {
  return inTransaction(database, async (transaction) => {
    await sql`select 1 from audit_heads where account_id = ${accountId} for update`.execute(transaction);
    const { rows } = await sql<{ number: bigint; hash: string }>`
      with old as (select number, hash, at < ${oldest} as is_old from audit_log
        where account_id = ${accountId} order by number limit ${entriesPerStep})
      select number, hash from old
      where number < coalesce((select min(number) from old where not is_old), ${Number.MAX_SAFE_INTEGER})
      order by number`.execute(transaction);
    const last = rows.at(-1);
    if (!last) return 0;
    const checkpoint = { number: last.number, hash: last.hash, removedAt: instantText(nowMs) };
    await transaction
      .insertInto("auditCheckpoints")
      .values({ accountId, ...checkpoint })
      .onConflict((conflict) => conflict.column("accountId").doUpdateSet(checkpoint))
      .execute();
    await sql`select set_config('weiche.audit_retention', 'on', true)`.execute(transaction);
    const deletion = transaction.deleteFrom("auditLog").where("accountId", "=", accountId);
    await deletion.where("number", "<=", last.number).execute();
    return rows.length;
  });
}
