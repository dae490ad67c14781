/** Sessions in the database. The cookie has a random token; every request reads the row with its hash. */
import type { Kysely, Transaction } from "kysely";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { accountBlocked, RequestError } from "../rights/request-error.ts";
import { instantText, instantValue, type Database } from "../db/database.ts";
import type { Role, Schema, Language, Theme } from "../db/schema.ts";
import { hashToken, makeToken } from "./secret-token.ts";

/** A session ends `idleMsMax` after its last request, and at the latest `sessionMsMax` after its start. */
export const idleMsMax = 12 * 3_600_000;
export const sessionMsMax = 7 * 86_400_000;
/** With this many sessions, a sign-in ends the session that was idle for longest. */
export const sessionsPerUserMax = 20;
const seenEveryMs = 60_000;
const agentLengthMax = 200;

export interface SignedInFrom {
  readonly source: string;
  readonly agent: string;
}

/** A signed-in person's session, found by its token at every request. */
export interface Session {
  /** The row's id. Only the cookie has the token. */
  readonly id: string;
  readonly user: {
    readonly id: UserId;
    readonly accountId: AccountId;
    readonly email: string;
    readonly role: Role;
    readonly blocked: boolean;
    /** null: the browser's language applies. */
    readonly language: Language | null;
    /** null: the system's theme applies. */
    readonly theme: Theme | null;
    /** null: every model is allowed. */
    readonly allowedModels: readonly string[] | null;
  };
  /** True if the operator has blocked the account. The session is then refused with this reason. */
  readonly accountBlocked: boolean;
  /** The session ends at this time, or earlier when idle. */
  readonly expiresAtMs: number;
}

/** Finds a session and marks it as seen. Finds none if the user is blocked or has another role now. */
const findSql = `
  with found as (
    select s.id as session_id, s.expires_at, s.seen_at, a.blocked_at is not null as account_blocked, u.*
    from sessions s join users u on u.id = s.user_id join accounts a on a.id = u.account_id
    where s.token_hash = $1 and s.expires_at > $2 and s.seen_at > $3 and s.role = u.role and not u.blocked
  ), seen as (
    update sessions set seen_at = $2 where id in (select session_id from found where seen_at <= $4)
  )
  select session_id as "sessionId", expires_at as "expiresAt", account_blocked as "accountBlocked",
    id, account_id as "accountId", email, role, blocked, language, theme, allowed_models as "allowedModels" from found`;

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({ kysely, prompt }: Database, clock: Clock) {
  return {
    /** Reads the session of a token from the database; undefined if it has no valid session. */
    async find(token: string): Promise<Session | undefined> {
      const nowMs = clock.now();
      const times = [nowMs, nowMs - idleMsMax, nowMs - seenEveryMs].map(instantText);
      const query = { name: "find-session", text: findSql, values: [hashToken(token), ...times] };
      type Row = Session["user"] &
        Pick<Session, "accountBlocked"> & { readonly sessionId: string; readonly expiresAt: Temporal.Instant };
      const row = (await prompt.query<Row>(query)).rows[0];
      if (!row) return undefined;
      const { sessionId, expiresAt, accountBlocked: isBlocked, ...user } = row;
      return { id: sessionId, user, accountBlocked: isBlocked, expiresAtMs: expiresAt.epochMilliseconds };
    },

    async end(id: string): Promise<void> {
      await kysely.deleteFrom("sessions").where("id", "=", id).execute();
    },

    /** Lists the user's sessions. `seenAt`: the last request, to the minute. `agent`: the browser's `User-Agent`. */
    async list(userId: UserId) {
      const nowMs = clock.now();
      const rows = await kysely
        .selectFrom("sessions as s")
        .innerJoin("users as u", "u.id", "s.userId")
        .select(["s.id", "s.createdAt", "s.seenAt", "s.expiresAt", "s.source", "s.agent"])
        .where("s.userId", "=", userId)
        .where("s.expiresAt", ">", instantValue(nowMs))
        .where("s.seenAt", ">", instantValue(nowMs - idleMsMax))
        .whereRef("s.role", "=", "u.role")
        .orderBy("s.seenAt", "desc")
        .orderBy("s.id", "desc")
        .execute();
      return rows.map(({ createdAt, seenAt, expiresAt, ...row }) => ({
        ...row,
        createdAt: createdAt.toString(),
        seenAt: seenAt.toString(),
        expiresAt: expiresAt.toString(),
      }));
    },
  };
}

/** The user was blocked during the authentication. */
export class UserIsBlocked extends RequestError {
  constructor() {
    super("conflict", "the user is blocked");
  }
}

/** Starts a session in the caller's transaction. Throws `UserIsBlocked`, or a `RequestError` if the account is blocked. */
export async function startSession(
  transaction: Transaction<Schema>,
  clock: Clock,
  userId: UserId,
  { source, agent }: SignedInFrom,
): Promise<{ token: string; session: Session }> {
  const token = makeToken();
  const id = uuidv7(clock);
  const nowMs = clock.now();
  // Locked, so that the session gets the user's current role.
  const user = await transaction
    .selectFrom("users")
    .select(["id", "accountId", "email", "role", "blocked", "language", "theme", "allowedModels"])
    .where("id", "=", userId)
    .forShare()
    .executeTakeFirstOrThrow();
  if (user.blocked) throw new UserIsBlocked();
  const account = transaction.selectFrom("accounts").select("blockedAt").where("id", "=", user.accountId);
  if ((await account.executeTakeFirstOrThrow()).blockedAt) throw accountBlocked();
  const oldest = transaction
    .selectFrom("sessions")
    .select("id")
    .where("userId", "=", userId)
    .orderBy("seenAt", "desc")
    .offset(sessionsPerUserMax - 1);
  await transaction.deleteFrom("sessions").where("id", "in", oldest).execute();
  const expiresAtMs = nowMs + sessionMsMax;
  // Also whoever joins by a link or opens an account has signed in.
  await transaction
    .updateTable("credentials")
    .set({ lastLoginAt: instantText(nowMs) })
    .where("userId", "=", userId)
    .execute();
  await transaction
    .insertInto("sessions")
    .values({
      id,
      tokenHash: hashToken(token),
      userId,
      role: user.role,
      source,
      agent: agent.replace(/[\p{Cc}\u2028\u2029]/gu, " ").slice(0, agentLengthMax),
      createdAt: instantText(nowMs),
      seenAt: instantText(nowMs),
      expiresAt: instantText(expiresAtMs),
    })
    .execute();
  return { token, session: { id, user, accountBlocked: false, expiresAtMs } };
}

export async function endSessions(database: Kysely<Schema>, userId: UserId, except?: string): Promise<void> {
  let sessions = database.deleteFrom("sessions").where("userId", "=", userId);
  if (except !== undefined) sessions = sessions.where("id", "<>", except);
  await sessions.execute();
}
