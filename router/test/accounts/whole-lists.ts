/** Returns whole lists of an account: users, keys and invitations in order of creation, the audit log newest first. */
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { listInvitations } from "../../src/accounts/invitation-list.ts";
import { listKeys } from "../../src/accounts/key-list.ts";
import { listUsers } from "../../src/accounts/user-list.ts";
import type { Database } from "../../src/db/database.ts";
import { auditStep } from "../../src/rights/audit-page.ts";
import { rowsMax } from "../../src/rights/list-page.ts";

const all = { limit: rowsMax, offset: 0, sort: "created", order: "asc" } as const;

export async function peopleOf(database: Database, accountId: AccountId, nowMs: number) {
  return (await listUsers(database, accountId, {}, all, nowMs)).items;
}

export async function keysOf(database: Database, userId: UserId, nowMs: number) {
  const user = database.kysely.selectFrom("users").select("accountId").where("id", "=", userId);
  const { accountId } = await user.executeTakeFirstOrThrow();
  return (await listKeys(database, accountId, { userId }, all, nowMs)).items;
}

export async function invitationsOf(database: Database, accountId: AccountId, nowMs: number) {
  return (await listInvitations(database, accountId, {}, all, nowMs)).items;
}

export async function auditOf(database: Database, accountId: AccountId, before = rowsMax) {
  const { entries } = await auditStep(database, accountId, { before }, rowsMax);
  return entries.map(({ actorName: _name, object: { kind, id }, ...entry }) => ({ ...entry, object: `${kind} ${id}` }));
}
