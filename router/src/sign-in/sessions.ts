/** Sessions in the database: a random token in the cookie, its hash in a row that every request reads again. */
import { sql, type Kysely, type Transaction } from "kysely";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { Refused } from "../rights/refused.ts";
import { inTransaction, instantText, type Database } from "../db/database.ts";
import type { Role, Schema, Language, Theme } from "../db/schema.ts";
import { hashToken, makeToken } from "./secret-token.ts";
import type { Session, Sessions } from "./session.ts";

/** A session ends this long after its last request, and at the latest this long after its start. */
export const idleMsMax = 12 * 3_600_000;
export const sessionMsMax = 7 * 86_400_000;
/** One more sign-in ends the session that was idle for longest. */
export const sessionsPerUserMax = 20;
const seenEveryMs = 60_000;
const agentLengthMax = 200;

export interface SignedInFrom {
  readonly source: string;
  readonly agent: string;
}

interface FoundRow {
  readonly id: string;
  readonly expires_at: Temporal.Instant;
  readonly user_id: UserId;
  readonly account_id: AccountId;
  readonly email: string;
  readonly role: Role;
  readonly blocked: boolean;
  readonly language: Language | null;
  readonly theme: Theme | null;
  readonly allowed_models: readonly string[] | null;
}

/** Finds a session and marks it as seen. There is none if the user is blocked or has another role by now. */
const findSql = `
  with found as (
    select s.id, s.seen_at, s.expires_at, u.id as user_id, u.account_id, u.email, u.role, u.blocked, u.language, u.theme,
      u.allowed_models
    from sessions s join users u on u.id = s.user_id
    where s.token_hash = $1 and s.expires_at > $2 and s.seen_at > $3 and s.role = u.role and not u.blocked
  ), seen as (
    update sessions set seen_at = $2 where id in (select id from found where seen_at <= $4)
  )
  select * from found`;

export function createSessions(database: Database, clock: Clock): Sessions {
  const { kysely, prompt } = database;
  return {
    start: (userId, from) => inTransaction(database, (transaction) => startSession(transaction, clock, userId, from)),

    async find(token) {
      const nowMs = clock.now();
      const times = [nowMs, nowMs - idleMsMax, nowMs - seenEveryMs].map(instantText);
      const query = { name: "find-session", text: findSql, values: [hashToken(token), ...times] };
      const row = (await prompt.query<FoundRow>(query)).rows[0];
      return row && view(row);
    },

    async end(id) {
      await kysely.deleteFrom("sessions").where("id", "=", id).execute();
    },

    endAll: (userId, except) => endSessions(kysely, userId, except),

    async list(userId) {
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

/** The user was blocked while they authenticated. */
export class UserIsBlocked extends Refused {
  constructor() {
    super("conflict", "the user is blocked");
  }
}

/** Call in the transaction of the change that signs the user in. Throws `UserIsBlocked`. */
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
    .selectAll()
    .where("id", "=", userId)
    .forShare()
    .executeTakeFirstOrThrow();
  if (user.blocked) throw new UserIsBlocked();
  const oldest = transaction
    .selectFrom("sessions")
    .select("id")
    .where("userId", "=", userId)
    .orderBy("seenAt", "desc")
    .offset(sessionsPerUserMax - 1);
  await transaction.deleteFrom("sessions").where("id", "in", oldest).execute();
  const row = await transaction
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
      expiresAt: instantText(nowMs + sessionMsMax),
    })
    .returning("expiresAt")
    .executeTakeFirstOrThrow();
  const { accountId: account_id, allowedModels: allowed_models } = user;
  const found = { ...user, id, user_id: userId, account_id, allowed_models, expires_at: row.expiresAt };
  return { token, session: view(found) };
}

export async function endSessions(database: Kysely<Schema>, userId: UserId, except?: string): Promise<void> {
  let sessions = database.deleteFrom("sessions").where("userId", "=", userId);
  if (except !== undefined) sessions = sessions.where("id", "<>", except);
  await sessions.execute();
}

function instantValue(ms: number) {
  return sql<Temporal.Instant>`${instantText(ms)}::timestamptz`;
}

function view(row: FoundRow): Session {
  const { user_id: id, account_id: accountId, email, role, blocked, language, theme } = row;
  const user = { id, accountId, email, role, blocked, language, theme, allowedModels: row.allowed_models };
  return { id: row.id, user, expiresAtMs: row.expires_at.epochMilliseconds };
}
