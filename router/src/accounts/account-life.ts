/**
 * Renames, blocks and deletes accounts. Owners may rename and delete their own, and the operator may do everything. A
 * trigger of the database announces each change of an account to the key caches of all routers.
 */
import { sql, type Transaction } from "kysely";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { AccountsContext } from "../rights/accounts-context.ts";
import { audited, type Deed } from "../rights/audit-log.ts";
import { found } from "../rights/request-error.ts";
import { mayChangeAccount, requireRight, type Actor } from "../rights/rights.ts";
import { attemptsAbout } from "../sign-in/attempt-rules.ts";
import { endPackage } from "../subscriptions/subscription-change.ts";
import { issueInvoices } from "../subscriptions/invoices/issue-invoices.ts";
import { freeDeletedAddress } from "./users.ts";

const deletedName = "deleted";

export function createAccountLife(context: AccountsContext) {
  const { database, clock, invoices } = context;

  return {
    rename: (id: AccountId, name: string) =>
      change(
        id,
        "account.rename",
        (transaction) => transaction.updateTable("accounts").set({ name: name.trim() }).where("id", "=", id).execute(),
        mayChangeAccount,
      ),

    /**
     * Blocks or unblocks an account. Keys of a blocked account get 401, and its users cannot use the portal. Its package
     * and charges continue. If the account is blocked already, the time of the first block stays.
     */
    setBlocked: (id: AccountId, blocked: boolean) =>
      change(id, blocked ? "account.block" : "account.unblock", async (transaction) => {
        const blockedAt = blocked ? sql<string>`coalesce(blocked_at, ${instantText(clock.now())})` : null;
        await transaction.updateTable("accounts").set({ blockedAt }).where("id", "=", id).execute();
        // A blocked account keeps its sessions, so that the portal can show why it refuses them. Unblocking ends them.
        if (!blocked) await deleteOfUsers(transaction, id, "sessions");
      }),

    /** Counts the objects that a deletion removes and keeps. */
    deletion: (id: AccountId) => summary(database.kysely, id),

    /**
     * Deletes an account for good: removes addresses, names, credentials, sessions, links, notices and counted attempts,
     * revokes its keys and ends its package now. Usage, invoices and audit log stay. The last period's invoice is issued
     * now, with the name and address. Returns the counts from before.
     */
    delete: (id: AccountId) =>
      change(
        id,
        "account.delete",
        async (transaction) => {
          const counts = await summary(transaction, id);
          await deleteSignIns(transaction, id);
          await revokeKeys(transaction, id, clock.now());
          await forgetUsers(transaction, id, clock.now());
          await transaction.deleteFrom("notices").where("accountId", "=", id).execute();
          await endPackage(transaction, id, clock.now());
          if (invoices) await issueInvoices(transaction, id, invoices, clock.now(), Infinity);
          await transaction.deleteFrom("billingDetails").where("accountId", "=", id).execute();
          const deleted = { name: deletedName, deletedAt: instantText(clock.now()), nextChargeAt: null };
          await transaction.updateTable("accounts").set(deleted).where("id", "=", id).execute();
          return counts;
        },
        mayChangeAccount,
      ),
  };

  /** Runs `work` with the account's row locked, so that no user is added meanwhile. */
  function change<T>(
    id: AccountId,
    action: Deed["action"],
    work: (transaction: Transaction<Schema>) => Promise<T>,
    may: (actor: Actor) => boolean = () => false,
  ): Promise<T> {
    return audited(context, { action, on: { kind: "account", id } }, async (transaction) => {
      const account = transaction.selectFrom("accounts").select("id").where("id", "=", id);
      found(await account.where("deletedAt", "is", null).forUpdate().executeTakeFirst(), "account", id);
      await requireRight(context, transaction, { kind: "account", id, accountId: id }, may);
      return work(transaction);
    });
  }
}

async function summary(kysely: Pick<Transaction<Schema>, "getExecutor">, id: AccountId) {
  const { rows } = await sql<Record<keyof typeof counted, bigint>>`
    select ${sql.join(Object.entries(counted).map(([name, of]) => sql`(${sql.raw(of)}) as ${sql.ref(name)}`))}
    from accounts a where a.id = ${id} and a.deleted_at is null`.execute(kysely);
  const counts = found(rows[0], "account", id);
  const number = (name: keyof typeof counted) => Number(counts[name]);
  return {
    goes: {
      users: number("users"),
      keys: number("keys"),
      sessions: number("sessions"),
      invitations: number("invitations"),
      notices: number("notices"),
    },
    stays: {
      invoiceLines: number("invoiceLines"),
      invoicedCents: number("invoicedCents"),
      invoices: number("invoices"),
      withoutInvoiceCents: number("withoutInvoiceCents"),
      requests: number("requests"),
      auditEntries: number("auditEntries"),
    },
  };
}

const ofUsers = "join users u on u.id = user_id where u.account_id = a.id";
const counted = {
  users: "select count(*) from users u where u.account_id = a.id and u.deleted_at is null",
  keys: "select count(*) from api_keys k where k.account_id = a.id and k.revoked_at is null",
  sessions: `select count(*) from sessions ${ofUsers}`,
  invitations: `select count(*) from invitations ${ofUsers}`,
  notices: "select count(*) from notices n where n.account_id = a.id",
  invoiceLines: "select count(*) from invoice_lines i where i.account_id = a.id",
  invoicedCents: "select coalesce(sum(i.amount_cents), 0) from invoice_lines i where i.account_id = a.id",
  invoices: "select count(*) from invoices i where i.account_id = a.id",
  withoutInvoiceCents:
    "select coalesce(sum(i.amount_cents), 0) from invoice_lines i where i.account_id = a.id and i.invoice_number is null",
  requests: `select coalesce(sum(t.requests), 0)::bigint from usage_totals t where t.account_id = a.id and t.scope = 'account'`,
  auditEntries: "select count(*) from audit_log l where l.account_id = a.id",
} as const;

/** Deletes the users' credentials, sessions and links, and the attempts counted for their addresses. */
async function deleteSignIns(transaction: Transaction<Schema>, id: AccountId): Promise<void> {
  const { rows: people } = await sql<{ email: string; networks: string[]; sessions: string[] }>`
    select u.email, array(select id::text from sessions where user_id = u.id) as sessions,
      array(select source from audit_log where account_id = ${id} and actor = u.id::text
        union select source from sessions where user_id = u.id) as networks
    from users u where u.account_id = ${id} and u.deleted_at is null order by u.id for update`.execute(transaction);
  const subjects = people.flatMap(({ email, networks, sessions }) => attemptsAbout(email, networks, sessions));
  const all = [...subjects, ...attemptsAbout(id, [], [])];
  await sql`delete from attempts where subject = any(${all}::text[])`.execute(transaction);
  for (const table of ["sessions", "invitations", "passwordResets", "credentials", "knownPlaces"] as const)
    await deleteOfUsers(transaction, id, table);
}

async function deleteOfUsers(
  transaction: Transaction<Schema>,
  id: AccountId,
  table: "sessions" | "invitations" | "passwordResets" | "credentials" | "knownPlaces",
): Promise<void> {
  const users = transaction.selectFrom("users").select("id").where("accountId", "=", id);
  await transaction.deleteFrom(table).where("userId", "in", users).execute();
}

async function revokeKeys(transaction: Transaction<Schema>, id: AccountId, nowMs: number): Promise<void> {
  const revokedAt = sql<string>`coalesce(revoked_at, ${instantText(nowMs)})`;
  await transaction.updateTable("apiKeys").set({ name: deletedName, revokedAt }).where("accountId", "=", id).execute();
  await transaction.updateTable("retiredKeys").set({ name: deletedName }).where("accountId", "=", id).execute();
  const keys = transaction.selectFrom("apiKeys").select("id").where("accountId", "=", id);
  await transaction.deleteFrom("keyUses").where("keyId", "in", keys).execute();
}

async function forgetUsers(transaction: Transaction<Schema>, id: AccountId, nowMs: number): Promise<void> {
  const users = transaction.selectFrom("users").select("id").where("accountId", "=", id).where("deletedAt", "is", null);
  for (const user of await users.execute())
    await transaction
      .updateTable("users")
      .set({
        email: await freeDeletedAddress(transaction, asId<UserId>(user.id)),
        name: null,
        blocked: true,
        deletedAt: instantText(nowMs),
        language: null,
        theme: null,
      })
      .where("id", "=", user.id)
      .execute();
}
