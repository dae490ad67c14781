/** Links with which invited users set their password. A user has one link; a new link replaces the old one. */
import type { Transaction } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import { hashToken, linkTo, makeToken } from "../sign-in/secret-token.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { AccountsContext } from "../rights/accounts-context.ts";
import { linkMaker } from "../mail/link-makers.ts";

export const invitationMsMax = 7 * 86_400_000;

/** Makes a new link. Only its hash is stored, so it can be shown only now. */
export async function issueInvitation(
  context: AccountsContext,
  transaction: Transaction<Schema>,
  userId: UserId,
): Promise<string> {
  const { clock, portalUrl } = context;
  const token = makeToken();
  const nowMs = clock.now();
  const row = {
    tokenHash: hashToken(token),
    createdAt: instantText(nowMs),
    expiresAt: instantText(nowMs + invitationMsMax),
    usedAt: null,
    withdrawnAt: null,
    createdBy: linkMaker(context),
  };
  await transaction
    .insertInto("invitations")
    .values({ userId, ...row })
    .onConflict((conflict) => conflict.column("userId").doUpdateSet(row))
    .execute();
  return linkTo(portalUrl, "invitation", token);
}
