/**
 * Checks whether a role may make a change, in the transaction of the change, with the actor's current role. The
 * operator may change everything. Objects of other accounts are reported as not found.
 */
import type { Selectable, Transaction } from "kysely";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import type { Role, Schema } from "../db/schema.ts";
import { operator, type ActingContext } from "./accounts-context.ts";
import type { Subject } from "./audit-log.ts";
import { found, RequestError } from "./request-error.ts";

export interface Actor {
  readonly id: UserId;
  readonly accountId: AccountId;
  readonly role: Role;
}

/** Only Owners may change what the account is: its name, package and billing address, and whether it exists. */
export function mayChangeAccount(actor: Actor): boolean {
  return actor.role === "owner";
}

/** Admins may change all users except Owners. */
export function mayChangeUser(actor: Actor, user: { readonly role: Role }): boolean {
  return actor.role === "owner" || (actor.role === "admin" && user.role !== "owner");
}

/** Only an Owner may make Owners, so no Admin can promote themselves. */
export function mayGrant(actor: Actor, role: Role): boolean {
  return actor.role === "owner" || (actor.role === "admin" && role !== "owner");
}

/** Users may change their own keys; an Owner may change all keys of the account. */
export function mayChangeKey(actor: Actor, key: { readonly userId: UserId }): boolean {
  return actor.role === "owner" || actor.id === key.userId;
}

export function mayRevokeKey(actor: Actor, key: { readonly userId: UserId }): boolean {
  return actor.role !== "member" || actor.id === key.userId;
}

/** Reads a user with the row locked; throws `RequestError` if there is none. */
export async function lockUser(transaction: Transaction<Schema>, id: UserId): Promise<Selectable<Schema["users"]>> {
  const user = transaction.selectFrom("users").selectAll().where("id", "=", id).where("deletedAt", "is", null);
  return found(await user.forUpdate().executeTakeFirst(), "user", id);
}

/** Call it with the object's row locked: a fixed lock order prevents deadlocks. Returns undefined for the operator. */
export async function requireRight(
  { origin = operator }: ActingContext,
  transaction: Transaction<Schema>,
  object: Subject & { readonly accountId: AccountId },
  may: (actor: Actor) => boolean,
): Promise<Actor | undefined> {
  if (origin.actor === operator.actor) return undefined;
  const actor = await transaction
    .selectFrom("users")
    .select(["id", "accountId", "role"])
    .where("id", "=", asId<UserId>(origin.actor))
    .where("blocked", "=", false)
    .forShare()
    .executeTakeFirst();
  if (actor?.accountId !== object.accountId)
    throw new RequestError("not_found", `there is no ${object.kind} ${object.id}`);
  if (!may(actor)) throw new RequestError("forbidden", "your role does not allow this");
  return actor;
}
