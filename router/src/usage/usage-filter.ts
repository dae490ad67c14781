/** Names the key, user and model to which a usage table is restricted. */
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import type { UsageTableWish } from "./usage-table.ts";

/** A part without a filter is null. A name is null if its object is not in the account or not visible to the asker. */
export async function nameUsageFilter(
  { pool }: Database,
  accountId: AccountId,
  { model, keyId, userIds }: UsageTableWish,
  userId: UserId | undefined,
) {
  const { rows } = await pool.query<Names>(
    `select k.name as "keyName", k.last_four as "lastFour", holder.email as holder, tester.email as tester,
       person.email as person
     from (select $2::uuid as key_id, $3::uuid as user_id, $4::uuid[] as seen) asked
     left join known_keys k on k.id = asked.key_id and k.account_id = $1 and (seen is null or k.user_id = any(seen))
     left join users holder on holder.id = k.user_id and holder.deleted_at is null
     left join users tester on tester.id = asked.key_id and tester.account_id = $1 and tester.deleted_at is null
       and (seen is null or tester.id = any(seen))
     left join users person on person.id = asked.user_id and person.account_id = $1 and person.deleted_at is null
       and (seen is null or person.id = any(seen))`,
    [accountId, keyId ?? null, userId ?? null, userIds ?? null],
  );
  const { keyName, lastFour, holder, tester, person } = rows[0]!;
  // The playground's key has its user's id.
  const kind: "api" | "test-chat" = tester === null ? "api" : "test-chat";
  return {
    model: model ?? null,
    key: keyId === undefined ? null : { id: keyId, kind, name: keyName, lastFour, userEmail: holder ?? tester },
    user: userId === undefined ? null : { id: userId, email: person },
  };
}

interface Names {
  readonly keyName: string | null;
  readonly lastFour: string | null;
  readonly holder: string | null;
  readonly tester: string | null;
  readonly person: string | null;
}
