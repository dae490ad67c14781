/** The users of an account. */
import { randomUUID } from "node:crypto";
import type { Selectable, Transaction, Updateable } from "kysely";
import type { Millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Role, Schema } from "../db/schema.ts";
import type { AccountsContext } from "../rights/accounts-context.ts";
import { audited, type Deed } from "../rights/audit-log.ts";
import { deletedAddress, newAddress } from "../mail/email-address.ts";
import { plainRow } from "../rights/plain-row.ts";
import { readCredentials } from "../sign-in/second-factor.ts";
import { endSessions } from "../sign-in/sessions.ts";
import { issueInvitation } from "./invitation-link.ts";
import { endLinks } from "../mail/link-makers.ts";
import { found, RequestError } from "../rights/request-error.ts";
import { lockUser, mayChangeUser, mayGrant, requireRight, type Actor } from "../rights/rights.ts";

/** Users of an account who are not deleted. The lists of users and invitations stay fast with as many (decision 44). */
export const usersMax = 10_000;

/** An undefined field stays unchanged; null removes a restriction. */
export interface Restrictions {
  readonly allowedModels?: readonly string[] | null;
  readonly creditLimit?: Millicredits | null;
}

interface NewUser extends Restrictions {
  /** If undefined, a new id is made. */
  readonly id?: UserId;
  readonly accountId: AccountId;
  readonly email: string;
  readonly role: Role;
}

interface UserWish extends Restrictions {
  /** A change ends the user's sessions, and links: those for the user if the new role is `owner`, else those by the user. */
  readonly role?: Role;
}

export function createUsers(context: AccountsContext) {
  return {
    create: ({ accountId, email, role, ...wish }: NewUser) =>
      audited(
        context,
        { action: "user.create", on: { kind: "account", id: accountId }, details: { role, ...wish } },
        async (transaction) => {
          const account = transaction.selectFrom("accounts").select("id").where("id", "=", accountId);
          // Locked, so that the account is not deleted meanwhile.
          const living = account.where("deletedAt", "is", null).forKeyShare();
          found(await living.executeTakeFirst(), "account", accountId);
          const place = { kind: "account", id: accountId, accountId } as const;
          await requireRight(context, transaction, place, (actor) => mayGrant(actor, role));
          await requireFewUsers(transaction, accountId);
          const { user, invitationUrl } = await insertInvitedUser(context, transaction, {
            accountId,
            email,
            role,
            ...wish,
          });
          return { ...viewUser(user), invitationUrl };
        },
        ({ id }) => ({ kind: "user", id }),
      ),

    update: (id: UserId, wish: UserWish) =>
      change(id, { action: "user.update", details: wish }, async (transaction, user) => {
        const { role = user.role } = wish;
        if (role !== user.role) await requireRole(transaction, user, role);
        return { role, ...restrictionColumns(wish) };
      }),

    /**
     * Blocks or unblocks a user. Blocking ends the user's sessions and the links that the user made. The user's keys are
     * refused until the user is unblocked. The last Owner who joined cannot be blocked.
     */
    setBlocked: (id: UserId, blocked: boolean) =>
      change(id, { action: blocked ? "user.block" : "user.unblock" }, async (transaction, user, actor) => {
        // An Owner who never joined cannot sign in anyway, so the operator may block even the only Owner.
        if (blocked && (actor || (await readCredentials(transaction, id))))
          await requireDispensable(transaction, user, actor);
        if (blocked) {
          await endSessions(transaction, id);
          await endLinks(transaction, context.clock, "createdBy", id);
        }
        return { blocked };
      }),

    /** Deletes a user for good: revokes keys, ends links that the user made, frees the address. Audit log and usage stay. */
    delete: (id: UserId) =>
      change(id, { action: "user.delete" }, async (transaction, user, actor) => {
        await requireDispensable(transaction, user, actor);
        const deletedAt = instantText(context.clock.now());
        await endSessions(transaction, id);
        await endLinks(transaction, context.clock, "createdBy", id);
        for (const table of ["credentials", "invitations", "passwordResets"] as const)
          await transaction.deleteFrom(table).where("userId", "=", id).execute();
        const keys = transaction.updateTable("apiKeys").set({ revokedAt: deletedAt }).where("userId", "=", id);
        await keys.where("revokedAt", "is", null).execute();
        return { blocked: true, deletedAt, name: null, email: await freeDeletedAddress(transaction, id) };
      }),
  };

  /** Changes a user with the row locked. Refuses if the actor may not change this user. */
  function change(
    id: UserId,
    deed: Omit<Deed, "on">,
    decide: (
      transaction: Transaction<Schema>,
      user: UserRow,
      actor: Actor | undefined,
    ) => Promise<Updateable<Schema["users"]>>,
  ) {
    return audited(context, { ...deed, on: { kind: "user", id } }, async (transaction) => {
      const user = await lockUser(transaction, id);
      const object = { kind: "user", id, accountId: user.accountId } as const;
      const actor = await requireRight(context, transaction, object, (candidate) => mayChangeUser(candidate, user));
      const changed = await decide(transaction, user, actor);
      const update = transaction.updateTable("users").set(changed).where("id", "=", id).returningAll();
      return viewUser(await update.executeTakeFirstOrThrow());
    });
  }

  async function requireRole(transaction: Transaction<Schema>, user: UserRow, role: Role): Promise<void> {
    const object = { kind: "user", id: user.id, accountId: user.accountId } as const;
    await requireRight(context, transaction, object, (actor) => mayGrant(actor, role));
    if (user.role === "owner") await requireOtherOwner(transaction, user);
    await endSessions(transaction, user.id);
    // An Admin may know a link for the new Owner. A user with a lower role may lack the right to make the links they made.
    await endLinks(transaction, context.clock, role === "owner" ? "userId" : "createdBy", user.id);
  }
}

type UserRow = Selectable<Schema["users"]>;

/** Requests at the same moment may exceed the limit by as many. */
async function requireFewUsers(transaction: Transaction<Schema>, accountId: AccountId): Promise<void> {
  const living = transaction.selectFrom("users").select("id").where("accountId", "=", accountId);
  const last = living
    .where("deletedAt", "is", null)
    .offset(usersMax - 1)
    .limit(1);
  if (await last.executeTakeFirst())
    throw new RequestError(
      "conflict",
      `the account has ${usersMax} users already: delete users who are no longer needed`,
    );
}

/** Refuses if users would remove themselves, or if the account would have no Owner: it could never get one again. */
async function requireDispensable(transaction: Transaction<Schema>, user: UserRow, actor: Actor | undefined) {
  if (actor?.id === user.id) throw new RequestError("conflict", "you cannot block or delete yourself");
  if (user.role === "owner") await requireOtherOwner(transaction, user);
}

/** Requires another unblocked Owner who has accepted the invitation. */
async function requireOtherOwner(transaction: Transaction<Schema>, user: UserRow): Promise<void> {
  const owners = await transaction
    .selectFrom("users")
    .select("id")
    .where("accountId", "=", user.accountId)
    .where("role", "=", "owner")
    .where("blocked", "=", false)
    .where("id", "in", (eb) => eb.selectFrom("credentials").select("userId"))
    .orderBy("id")
    .forUpdate()
    .execute();
  if (!owners.some(({ id }) => id !== user.id))
    throw new RequestError("conflict", "the account must keep one Owner who can sign in");
}

/** Adds a user and the invitation that lets them set a password. */
export async function insertInvitedUser(context: AccountsContext, transaction: Transaction<Schema>, wish: NewUser) {
  const user = await insertUser(context, transaction, wish);
  return { user, invitationUrl: await issueInvitation(context, transaction, user.id) };
}

export async function freeDeletedAddress(transaction: Transaction<Schema>, id: UserId): Promise<string> {
  const email = deletedAddress(id);
  const taken = await transaction.selectFrom("users").select("id").where("email", "=", email).executeTakeFirst();
  return taken === undefined ? email : deletedAddress(id, randomUUID());
}

/** Adds a user who cannot sign in yet. */
export async function insertUser(
  { clock }: AccountsContext,
  transaction: Transaction<Schema>,
  wish: NewUser,
): Promise<UserRow> {
  const user = await transaction
    .insertInto("users")
    .values({
      id: wish.id ?? asId<UserId>(uuidv7(clock)),
      accountId: wish.accountId,
      email: newAddress(wish.email),
      role: wish.role,
      allowedModels: wish.allowedModels ? [...wish.allowedModels] : null,
      creditLimit: wish.creditLimit ?? null,
      createdAt: instantText(clock.now()),
    })
    .onConflict((conflict) => conflict.column("email").doNothing())
    .returningAll()
    .executeTakeFirst();
  if (!user) throw new RequestError("conflict", "a user with this e-mail address exists already");
  return user;
}

function viewUser(user: UserRow) {
  const { id, accountId, email, role, blocked, allowedModels, creditLimit, createdAt } = user;
  return plainRow({ id, accountId, email, role, blocked, allowedModels, creditLimit, createdAt });
}

/** Returns the columns to update; `undefined` leaves a column unchanged. A changed limit unblocks until the next evaluation. */
export function restrictionColumns({ allowedModels, creditLimit }: Restrictions) {
  return {
    allowedModels: allowedModels && [...allowedModels],
    creditLimit,
    limitReachedUntil: creditLimit === undefined ? undefined : null,
  };
}
