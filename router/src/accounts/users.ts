/** The people of an account. */
import type { Selectable, Transaction, Updateable } from "kysely";
import { formatCredits, type Millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Role, Schema } from "../db/schema.ts";
import type { AccountsContext } from "./accounts-context.ts";
import { audited } from "./audit-log.ts";
import { issueInvitation } from "./invitation-link.ts";
import { found, Refused } from "./refused.ts";

export interface UserView {
  readonly id: UserId;
  readonly accountId: AccountId;
  readonly email: string;
  readonly role: Role;
  readonly blocked: boolean;
  /** null: every model. */
  readonly allowedModels: readonly string[] | null;
  /** Credits per billing period over all keys of the user, with three places; null: the package alone limits. */
  readonly creditLimit: string | null;
  readonly createdAt: string;
}

/** What is absent stays as it is; null takes a restriction away. */
export interface Restrictions {
  readonly allowedModels?: readonly string[] | null;
  readonly creditLimit?: Millicredits | null;
}

export interface NewUser extends Restrictions {
  readonly accountId: AccountId;
  readonly email: string;
  readonly role: Role;
}

export interface Users {
  create(wish: NewUser): Promise<UserView & { invitationUrl: string }>;
  update(id: UserId, wish: Restrictions): Promise<UserView>;
  /** All keys of the user stop, or work again. */
  setBlocked(id: UserId, blocked: boolean): Promise<UserView>;
}

export function createUsers(context: AccountsContext): Users {
  return {
    create: ({ accountId, email, role, ...wish }) =>
      audited(
        context,
        { action: "user.create", on: { kind: "account", id: accountId }, details: { role, ...wish } },
        async (transaction) => {
          const account = transaction.selectFrom("accounts").select("id").where("id", "=", accountId);
          found(await account.executeTakeFirst(), "account", accountId);
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

    update: (id, wish) =>
      audited(context, { action: "user.update", on: { kind: "user", id }, details: wish }, (transaction) =>
        updateUser(transaction, id, restrictionColumns(wish)),
      ),

    setBlocked: (id, blocked) =>
      audited(context, { action: blocked ? "user.block" : "user.unblock", on: { kind: "user", id } }, (transaction) =>
        updateUser(transaction, id, { blocked }),
      ),
  };
}

async function updateUser(transaction: Transaction<Schema>, id: UserId, change: Updateable<Schema["users"]>) {
  const user = transaction.updateTable("users").set(change).where("id", "=", id).returningAll();
  return viewUser(found(await user.executeTakeFirst(), "user", id));
}

/** Adds a user and the invitation that lets them set a password. */
export async function insertInvitedUser(context: AccountsContext, transaction: Transaction<Schema>, wish: NewUser) {
  const user = await insertUser(context, transaction, wish);
  return { user, invitationUrl: await issueInvitation(context, transaction, user.id) };
}

/** Adds somebody who cannot sign in yet. */
export async function insertUser(
  { clock }: Pick<AccountsContext, "clock">,
  transaction: Transaction<Schema>,
  wish: NewUser,
): Promise<Selectable<Schema["users"]>> {
  const user = await transaction
    .insertInto("users")
    .values({
      id: asId<UserId>(uuidv7(clock)),
      accountId: wish.accountId,
      email: wish.email.trim().toLowerCase(),
      role: wish.role,
      allowedModels: wish.allowedModels ? [...wish.allowedModels] : null,
      creditLimit: wish.creditLimit ?? null,
      createdAt: instantText(clock.now()),
    })
    .onConflict((conflict) => conflict.column("email").doNothing())
    .returningAll()
    .executeTakeFirst();
  if (!user) throw new Refused("conflict", "there is a user with this e-mail address already");
  return user;
}

export function viewUser(user: Selectable<Schema["users"]>): UserView {
  const { id, accountId, email, role, blocked, allowedModels, creditLimit, createdAt } = user;
  return {
    id,
    accountId,
    email,
    role,
    blocked,
    ...viewRestrictions({ allowedModels, creditLimit }),
    createdAt: createdAt.toString(),
  };
}

export function viewRestrictions({
  allowedModels,
  creditLimit,
}: {
  allowedModels: string[] | null;
  creditLimit: Millicredits | null;
}) {
  return { allowedModels, creditLimit: creditLimit === null ? null : formatCredits(creditLimit) };
}

/** A changed limit lets requests pass at once; if usage is beyond it still, the next evaluation stops them again. */
export function restrictionColumns({ allowedModels, creditLimit }: Restrictions) {
  return {
    ...(allowedModels === undefined ? {} : { allowedModels: allowedModels && [...allowedModels] }),
    ...(creditLimit === undefined ? {} : { creditLimit, limitReachedUntil: null }),
  };
}
