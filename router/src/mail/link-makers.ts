/**
 * Records who made a one-time link (an invitation or a password reset). The maker knows the link and could use it, so it is
 * revoked when the maker loses the right to make it.
 */
import type { Transaction } from "kysely";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { asId, type UserId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { operator, type AccountsContext } from "../rights/accounts-context.ts";

/** Returns the user who makes links in this context; null for the operator. */
export function linkMaker({ origin = operator }: AccountsContext): UserId | null {
  return origin.actor === operator.actor ? null : asId<UserId>(origin.actor);
}

/** Revokes the links for a user (`userId`), or the links that a user made (`createdBy`). */
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
