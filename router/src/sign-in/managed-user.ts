/** Users whose access is managed by the operator, or by an Admin or Owner of their account. */
import type { Transaction } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import type { AccountsContext } from "../rights/accounts-context.ts";
import { RequestError } from "../rights/request-error.ts";
import { lockUser, mayChangeUser, requireRight } from "../rights/rights.ts";
import type { Schema } from "../db/schema.ts";
import { readCredentials } from "./second-factor.ts";

/** Reads a user with the row locked. Refuses actors who manage themselves: they change their password with the current one. */
export async function lockManagedUser(context: AccountsContext, transaction: Transaction<Schema>, id: UserId) {
  const user = await lockUser(transaction, id);
  const object = { kind: "user", id, accountId: user.accountId } as const;
  const actor = await requireRight(context, transaction, object, (candidate) => mayChangeUser(candidate, user));
  if (actor?.id === id) throw new RequestError("conflict", "you cannot do this to yourself");
  const hasJoined = (await readCredentials(transaction, id)) !== undefined;
  return { email: user.email, language: user.language, blocked: user.blocked, hasJoined };
}
