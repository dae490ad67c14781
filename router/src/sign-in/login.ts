/** Signs people in and out. */
import type { UserId } from "@weiche/shared/ids.ts";
import { audited } from "../rights/audit-log.ts";
import { RequestError } from "../rights/request-error.ts";
import { asThemselves, type IdentityContext } from "./identity-context.ts";
import { normalPassword } from "./password-rules.ts";
import { prove, type Claim, type Unproven } from "./proof.ts";
import { endSessions, startSession, UserIsBlocked, type Session, type SignedInFrom } from "./sessions.ts";

interface SignedIn {
  readonly kind: "signed-in";
  /** Used only in the cookie. */
  readonly token: string;
  readonly session: Session;
}

class PasswordChanged extends Error {}

export function createLogin(context: IdentityContext) {
  const { clock, hashing, events } = context;
  return {
    async signIn(claim: Claim, from: SignedInFrom): Promise<SignedIn | Unproven> {
      const proof = await prove(context, claim, { source: from.source });
      if (proof.kind !== "proven") return proof;
      const { userId, stored, failedLogins } = proof;
      const isOutdated = hashing.isOutdated(stored);
      const password = isOutdated
        ? await hashing.hash(normalPassword(claim.password), { source: from.source, isKnown: true })
        : stored;
      const on = { kind: "user", id: userId } as const;
      const deed = { action: "session.start", on, details: { failedBefore: failedLogins } } as const;
      try {
        const started = await audited(asThemselves(context, userId, from.source), deed, async (transaction) => {
          const row = transaction
            .updateTable("credentials")
            .set({ password, failedLogins: 0 })
            .where("userId", "=", userId)
            .where("password", "=", stored);
          if ((await row.executeTakeFirst()).numUpdatedRows !== 1n) throw new PasswordChanged();
          return startSession(transaction, clock, userId, from);
        });
        events.loginFinished("signed-in");
        return { kind: "signed-in", ...started };
      } catch (error) {
        const isOfAccount = error instanceof RequestError && error.kind === "account_blocked";
        if (!(error instanceof PasswordChanged || error instanceof UserIsBlocked || isOfAccount)) throw error;
        const kind = isOfAccount ? "account-blocked" : error instanceof UserIsBlocked ? "blocked" : "wrong";
        events.loginFinished(kind);
        return { kind };
      }
    },

    /** Ends a session of the user; does nothing if it does not exist. */
    signOut: (userId: UserId, sessionId: string) =>
      audited(context, { action: "session.end", on: { kind: "user", id: userId } }, async (transaction) => {
        await transaction.deleteFrom("sessions").where("userId", "=", userId).where("id", "=", sessionId).execute();
      }),

    /** Ends a session of the user; throws a `RequestError` if it does not exist. */
    endDevice: (userId: UserId, id: string) =>
      audited(context, { action: "session.end", on: { kind: "user", id: userId } }, async (transaction) => {
        const own = transaction.deleteFrom("sessions").where("userId", "=", userId).where("id", "=", id);
        if ((await own.executeTakeFirst()).numDeletedRows !== 1n)
          throw new RequestError("not_found", `there is no session ${id}`);
      }),

    signOutEverywhere: (userId: UserId) =>
      audited(context, { action: "session.end-all", on: { kind: "user", id: userId } }, (transaction) =>
        endSessions(transaction, userId),
      ),
  };
}
