/**
 * One-time links, invitations and those for a new password, open a door to whoever has them, and their makers have them,
 * too. So a link ends when its maker might not make it any more.
 */
import type { Transaction } from "kysely";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { asId, type UserId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { operator, type AccountsContext } from "../rights/accounts-context.ts";

/** null: the operator. */
export function linkMaker({ origin = operator }: Pick<AccountsContext, "origin">): UserId | null {
  return origin.actor === operator.actor ? null : asId<UserId>(origin.actor);
}

/** Ends the links that lead to this user, or those that this user made. */
export async function endLinks(
  transaction: Transaction<Schema>,
  clock: Clock,
  which: "userId" | "createdBy",
  id: UserId,
): Promise<void> {
  await transaction.deleteFrom("passwordResets").where(which, "=", id).execute();
  await transaction
    .updateTable("invitations")
    .set({ withdrawnAt: instantText(clock.now()) })
    .where(which, "=", id)
    .where("usedAt", "is", null)
    .where("withdrawnAt", "is", null)
    .execute();
}
