/** Signs people in and out. */
import { sql, type Selectable, type Transaction } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { networkOf, unknownAddress } from "../edge/client-network.ts";
import type { MailTopic } from "../mail/mail-topics.ts";
import { signInLetter } from "../mail/notice-letters.ts";
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
      let toldOf: Person | undefined;
      try {
        const started = await audited(asThemselves(context, userId, from.source), deed, async (transaction) => {
          const row = transaction
            .updateTable("credentials")
            .set({ password, failedLogins: 0 })
            .where("userId", "=", userId)
            .where("password", "=", stored);
          if ((await row.executeTakeFirst()).numUpdatedRows !== 1n) throw new PasswordChanged();
          if (await notePlace(transaction, clock, userId, from.source)) toldOf = await personOf(transaction, userId);
          return startSession(transaction, clock, userId, from);
        });
        if (toldOf) mailSignIn(context, toldOf, from);
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

/** Returns whether the person has signed in before, but never from this network. */
async function notePlace(
  transaction: Transaction<Schema>,
  clock: Clock,
  userId: UserId,
  source: string,
): Promise<boolean> {
  if (source === unknownAddress) return false;
  const { rows } = await sql<{ isNew: boolean; isFirst: boolean }>`
    insert into known_places (user_id, place, seen_at) values (${userId}, ${networkOf(source)}, ${instantText(clock.now())})
    on conflict (user_id, place) do update set seen_at = excluded.seen_at
    returning xmax = 0 as is_new,
      not exists (select from known_places k where k.user_id = ${userId}) as is_first`.execute(transaction);
  return rows[0]!.isNew && !rows[0]!.isFirst;
}

type Person = Pick<Selectable<Schema["users"]>, "email" | "language" | "mailsOff">;

function personOf(transaction: Transaction<Schema>, userId: UserId): Promise<Person> {
  const person = transaction.selectFrom("users").select(["email", "language", "mailsOff"]).where("id", "=", userId);
  return person.executeTakeFirstOrThrow();
}

/** Not awaited: a slow mail server must not hold up the sign-in. */
function mailSignIn({ mail, clock, portalUrl }: IdentityContext, person: Person, from: SignedInFrom): void {
  const { email, language, mailsOff } = person;
  if (mailsOff.includes("sign-in" satisfies MailTopic)) return;
  void mail?.send(email, signInLetter(language, { ...from, atMs: clock.now(), portalUrl }));
}
