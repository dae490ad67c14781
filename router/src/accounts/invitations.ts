/**
 * Invitations of an account's users. A person who has the link sets a password and is then signed in.
 *
 *   open ──accepted with a password──▶ accepted        open ──time──▶ expired
 *   open ──withdrawn──▶ withdrawn                      any but accepted ──invited again──▶ open, with a new link
 */
import type { Selectable } from "kysely";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { asThemselves, type IdentityContext } from "../sign-in/identity-context.ts";
import { lockManagedUser } from "../sign-in/managed-user.ts";
import { goodPassword } from "../sign-in/password-rules.ts";
import { setPassword, takeLink } from "../sign-in/passwords.ts";
import { hashToken } from "../sign-in/secret-token.ts";
import { startSession, type SignedInFrom } from "../sign-in/sessions.ts";
import { instantText } from "../db/database.ts";
import type { Schema, Language, Theme } from "../db/schema.ts";
import { invitationLetter } from "../mail/letters.ts";
import { audited } from "../rights/audit-log.ts";
import { invitationMsMax, issueInvitation } from "./invitation-link.ts";
import type { InvitationState } from "./invitation-list.ts";
import { plainRow } from "../rights/plain-row.ts";
import { RequestError } from "../rights/request-error.ts";

interface Acceptance {
  readonly token: string;
  readonly password: string;
  readonly language?: Language;
  readonly theme?: Theme;
}

export function createInvitations(context: IdentityContext) {
  const { clock, hashing, throttle, mail } = context;
  const { kysely } = context.database;

  const invited = () =>
    kysely
      .selectFrom("invitations as i")
      .innerJoin("users as u", "u.id", "i.userId")
      .innerJoin("accounts as a", "a.id", "u.accountId")
      .select(["u.id as userId", "u.email", "u.role", "u.blocked", "a.name as accountName"])
      .select(["i.createdAt", "i.expiresAt", "i.usedAt", "i.withdrawnAt"]);

  async function find(token: string, source: string) {
    const taken = await takeLink(throttle, source);
    const row = await invited().where("i.tokenHash", "=", hashToken(token)).executeTakeFirst();
    if (!row || row.blocked) throw unknownLink();
    await taken.giveBack();
    return row;
  }

  /** Mails a new link. Returns whether the mail server took it, or null if this router sends no mail. */
  async function send(userId: UserId, url: string): Promise<boolean | null> {
    if (!mail) return null;
    const user = await kysely
      .selectFrom("users as u")
      .innerJoin("accounts as a", "a.id", "u.accountId")
      .select(["u.email", "u.language", "a.name as accountName"])
      .where("u.id", "=", userId)
      .executeTakeFirstOrThrow();
    const facts = { accountName: user.accountName, url, expiresAtMs: clock.now() + invitationMsMax };
    return mail.send(user.email, invitationLetter(user.language, facts));
  }

  return {
    send,
    /** Counts an attempt. Call it before a user or an invitation is made. Returns how long to wait in ms; 0: no wait. */
    count: (accountId: AccountId, source: string) =>
      throttle.take("invite", { source, whom: accountId }).then(({ waitMs }) => waitMs),

    /** Shows an invitation without consuming its link. */
    async preview(token: string, source: string) {
      const row = await find(token, source);
      const { email, role, createdAt, expiresAt, accountName } = row;
      return plainRow({ email, role, state: stateOf(row, clock.now()), createdAt, expiresAt, accountName });
    },

    /** Consumes the link, sets the password and signs the person in. */
    async accept({ token, password, language, theme }: Acceptance, from: SignedInFrom) {
      const normal = goodPassword(password);
      const tokenHash = hashToken(token);
      const row = await find(token, from.source);
      if (stateOf(row, clock.now()) !== "open") throw linkIsOver(stateOf(row, clock.now()));
      const hashed = await hashing.hash(normal, { source: from.source, isKnown: true });
      const { userId } = row;
      const deed = { action: "user.join", on: { kind: "user", id: userId } } as const;
      return audited(asThemselves(context, userId, from.source), deed, async (transaction) => {
        const nowMs = clock.now();
        const used = await transaction
          .updateTable("invitations")
          .set({ usedAt: instantText(nowMs) })
          .where("tokenHash", "=", tokenHash)
          .where("usedAt", "is", null)
          .where("withdrawnAt", "is", null)
          .executeTakeFirst();
        if (used.numUpdatedRows !== 1n) throw linkIsOver("accepted");
        await setPassword(transaction, userId, hashed, nowMs);
        if (language !== undefined || theme !== undefined)
          await transaction.updateTable("users").set({ language, theme }).where("id", "=", userId).execute();
        await throttle.recognise(from.source, row.email, ["login"], transaction);
        return startSession(transaction, clock, userId, from);
      });
    },

    /** Replaces the link. Refuses if the user has joined. `mailed` is null if this router sends no mail. */
    async renew(userId: UserId) {
      const deed = { action: "user.invite", on: { kind: "user", id: userId } } as const;
      const invitationUrl = await audited(context, deed, async (transaction) => {
        const { hasJoined, blocked } = await lockManagedUser(context, transaction, userId);
        if (hasJoined)
          throw new RequestError("conflict", "the user has joined already: make a password reset link instead");
        if (blocked) throw new RequestError("conflict", "the user is blocked");
        return issueInvitation(context, transaction, userId);
      });
      return { invitationUrl, mailed: await send(userId, invitationUrl) };
    },

    withdraw: (userId: UserId) =>
      audited(context, { action: "user.withdraw", on: { kind: "user", id: userId } }, async (transaction) => {
        await lockManagedUser(context, transaction, userId);
        const row = await transaction
          .updateTable("invitations")
          .set({ withdrawnAt: instantText(clock.now()) })
          .where("userId", "=", userId)
          .where("usedAt", "is", null)
          .executeTakeFirst();
        if (row.numUpdatedRows !== 1n) throw new RequestError("conflict", "there is no invitation to withdraw");
      }),
  };
}

type Times = Pick<Selectable<Schema["invitations"]>, "expiresAt" | "usedAt" | "withdrawnAt">;

function stateOf({ usedAt, withdrawnAt, expiresAt }: Times, nowMs: number): InvitationState {
  if (usedAt) return "accepted";
  if (withdrawnAt) return "withdrawn";
  return expiresAt.epochMilliseconds > nowMs ? "open" : "expired";
}

function unknownLink(): RequestError {
  return new RequestError("not_found", "this link is not valid: ask for a new invitation");
}

function linkIsOver(state: InvitationState): RequestError {
  return new RequestError("conflict", `this invitation is ${state}: ask for a new one`);
}
