/** Changes a person's password, with the current password or with a one-time link. */
import type { Transaction } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import { audited } from "../rights/audit-log.ts";
import { normalEmail } from "../mail/email-address.ts";
import { linkMaker } from "../mail/link-makers.ts";
import { plainRow } from "../rights/plain-row.ts";
import { RequestError, tooManyAttempts } from "../rights/request-error.ts";
import { instantText, instantValue } from "../db/database.ts";
import type { Schema, Language } from "../db/schema.ts";
import { resetLetter } from "../mail/letters.ts";
import { asThemselves, type IdentityContext } from "./identity-context.ts";
import type { LoginThrottle, Taken } from "./login-throttle.ts";
import { lockManagedUser } from "./managed-user.ts";
import { goodPassword } from "./password-rules.ts";
import { prove, type Claim, type Unproven } from "./proof.ts";
import { ProofIsOver, requireStillProven } from "./proven.ts";
import { hashToken, linkTo, makeToken } from "./secret-token.ts";
import { endSessions } from "./sessions.ts";

export const resetMsMax = 3_600_000;

export function createPasswords(context: IdentityContext) {
  const { database, clock, hashing, throttle, mail, portalUrl } = context;
  const { kysely, pool } = database;

  function makeReset() {
    const token = makeToken();
    const nowMs = clock.now();
    const expiresAtMs = nowMs + resetMsMax;
    const times = { createdAt: instantText(nowMs), expiresAt: instantText(expiresAtMs) };
    return { row: { tokenHash: hashToken(token), ...times }, url: linkTo(portalUrl, "reset", token), expiresAtMs };
  }

  /** Throws `RequestError` if the link does not work. */
  async function findReset(tokenHash: string, source: string) {
    const taken = await takeLink(throttle, source);
    const open = kysely
      .selectFrom("passwordResets as r")
      .innerJoin("users as u", "u.id", "r.userId")
      .select(["u.id", "u.email", "r.expiresAt"])
      .where("r.tokenHash", "=", tokenHash)
      .where("r.expiresAt", ">", instantValue(clock.now()))
      .where("u.blocked", "=", false);
    const found = await open.executeTakeFirst();
    if (!found) throw linkIsOver();
    await taken.giveBack();
    return found;
  }

  return {
    /** Changes the password and ends all sessions except `sessionId`. */
    async change(
      claim: Claim,
      next: string,
      { source, sessionId }: { readonly source: string; readonly sessionId: string },
    ): Promise<{ readonly kind: "changed" } | Unproven> {
      const password = goodPassword(next);
      const proof = await prove(context, claim, { source, sessionId });
      if (proof.kind !== "proven") return proof;
      const { userId } = proof;
      const hashed = await hashing.hash(password, { source, isKnown: true });
      const deed = { action: "user.change-password", on: { kind: "user", id: userId } } as const;
      try {
        await audited(context, deed, async (transaction) => {
          await requireStillProven(transaction, { proof, sessionId });
          await setPassword(transaction, userId, hashed, clock.now(), sessionId);
        });
        return { kind: "changed" };
      } catch (error) {
        if (error instanceof ProofIsOver) return { kind: "wrong" };
        throw error;
      }
    },

    /** Mails a link if the user exists, without revealing this. Returns how long to wait in ms; 0 if accepted. */
    async requestReset(email: string, source: string): Promise<number> {
      if (!mail)
        throw new RequestError(
          "conflict",
          "this service sends no mail: ask an Admin or Owner of your account for a link",
        );
      const { waitMs } = await throttle.take("reset", { source, whom: email });
      if (waitMs > 0) return waitMs;
      const { row, url, expiresAtMs } = makeReset();
      const values = [row.tokenHash, row.createdAt, row.expiresAt, normalEmail(email)];
      const { rows } = await pool.query<{ email: string; language: Language | null }>({ text: requestSql, values });
      // Not awaited: the time of the answer must not reveal whether the user exists.
      for (const user of rows) void mail.send(user.email, resetLetter(user.language, { url, expiresAtMs }));
      return 0;
    },

    /** Makes a link for another user. Returns the link only if it was not mailed. */
    async makeResetLink(userId: UserId) {
      const { row, url, expiresAtMs } = makeReset();
      const deed = { action: "user.reset-link", on: { kind: "user", id: userId } } as const;
      const user = await audited(context, deed, async (transaction) => {
        const managed = await lockManagedUser(context, transaction, userId);
        if (!managed.hasJoined)
          throw new RequestError("conflict", "the user has no password yet: renew the invitation instead");
        if (managed.blocked) throw new RequestError("conflict", "the user is blocked");
        await transaction
          .insertInto("passwordResets")
          .values({ userId, ...row, createdBy: linkMaker(context) })
          .execute();
        return managed;
      });
      const mailed = (await mail?.send(user.email, resetLetter(user.language, { url, expiresAtMs }))) ?? false;
      return { mailed, resetUrl: mailed ? null : url };
    },

    /** Shows until when the link works, without consuming it. */
    async previewReset(token: string, source: string) {
      const { expiresAt } = await findReset(hashToken(token), source);
      return plainRow({ expiresAt });
    },

    /** Consumes the link, sets the password and ends all sessions. The second factor does not change. */
    async reset(token: string, password: string, source: string): Promise<void> {
      const normal = goodPassword(password);
      const tokenHash = hashToken(token);
      const user = await findReset(tokenHash, source);
      const hashed = await hashing.hash(normal, { source, isKnown: true });
      const deed = { action: "user.reset-password", on: { kind: "user", id: user.id } } as const;
      await audited(asThemselves(context, user.id, source), deed, async (transaction) => {
        const used = transaction.deleteFrom("passwordResets").where("tokenHash", "=", tokenHash);
        if ((await used.executeTakeFirst()).numDeletedRows !== 1n) throw linkIsOver();
        await setPassword(transaction, user.id, hashed, clock.now());
        // Not for codes, because a link in a mailbox is not a second factor.
        await throttle.recognise(source, user.email, ["login"], transaction);
      });
    },
  };
}

/** Counts a lookup of a one-time link. Call it before the lookup, and `giveBack` if the link exists. */
export async function takeLink(throttle: LoginThrottle, source: string): Promise<Taken> {
  const taken = await throttle.take("link", { source });
  if (taken.waitMs > 0) throw tooManyAttempts(taken.waitMs);
  return taken;
}

/** Selects only users who have joined, because a reset must not replace a withdrawn invitation. */
const requestSql = `
  with made as (
    insert into password_resets (token_hash, user_id, created_at, expires_at)
    select $1, u.id, $2::timestamptz, $3::timestamptz
    from users u join credentials c on c.user_id = u.id
    where u.email = $4 and not u.blocked
    returning user_id
  )
  select u.email, u.language from users u join made on made.user_id = u.id`;

/** Sets the password, and ends all sessions except `keptSession` and all reset links. */
export async function setPassword(
  transaction: Transaction<Schema>,
  userId: UserId,
  password: string,
  nowMs: number,
  keptSession?: string,
): Promise<void> {
  const row = { password, passwordSetAt: instantText(nowMs), failedLogins: 0 };
  await transaction
    .insertInto("credentials")
    .values({ userId, ...row })
    .onConflict((conflict) => conflict.column("userId").doUpdateSet(row))
    .execute();
  await transaction.deleteFrom("passwordResets").where("userId", "=", userId).execute();
  await endSessions(transaction, userId, keptSession);
}

function linkIsOver(): RequestError {
  return new RequestError("not_found", "this link has expired or was used already: ask for a new one");
}
