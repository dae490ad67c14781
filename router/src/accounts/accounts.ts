/** Accounts with their users, keys and packages. */
import type { Selectable, Transaction } from "kysely";
import { asId, uuidv7, type AccountId } from "@weiche/shared/ids.ts";
import { instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { AccountsContext, Origin } from "../rights/accounts-context.ts";
import { audited } from "../rights/audit-log.ts";
import { createAccountLife } from "./account-life.ts";
import { createKeys } from "./keys.ts";
import { plainRow } from "../rights/plain-row.ts";
import { found, RequestError } from "../rights/request-error.ts";
import { createBillingDetails } from "../subscriptions/invoices/billing-details.ts";
import { createInvoices } from "../subscriptions/invoices/invoices.ts";
import { readPackages } from "../subscriptions/packages.ts";
import { packageNamed, toTerm, viewSubscription, type SubscriptionView } from "../subscriptions/subscription.ts";
import { changePackage, createSubscriptions, euros } from "../subscriptions/subscriptions.ts";
import { createUsers, insertInvitedUser } from "./users.ts";

export interface Accounts extends ReturnType<typeof partsOf> {
  /** The same functions with another actor. */
  as(origin: Origin): Accounts;
}

export function createAccounts(context: AccountsContext): Accounts {
  return { ...partsOf(context), as: (origin) => createAccounts({ ...context, origin }) };
}

interface NewAccount {
  readonly name: string;
  readonly ownerEmail: string;
  readonly package?: string;
  /** The agreed price of the package; any other price is refused. If undefined, the current price is charged. */
  readonly dueCents?: number;
}

function partsOf(context: AccountsContext) {
  const { database, clock } = context;
  const { kysely } = database;

  async function read({ id, deleted }: { readonly id?: AccountId; readonly deleted?: boolean }) {
    let accounts = kysely
      .selectFrom("accounts as a")
      .select((eb) => [
        "a.id",
        "a.name",
        "a.createdAt",
        "a.blockedAt",
        "a.deletedAt",
        eb
          .selectFrom("users as u")
          .select("u.id")
          .whereRef("u.accountId", "=", "a.id")
          .where("u.role", "=", "owner")
          .where("u.deletedAt", "is", null)
          .orderBy("u.id")
          .limit(1)
          .as("ownerUserId"),
      ])
      .orderBy("a.id");
    let subscriptions = kysely.selectFrom("subscriptions").selectAll().orderBy("startedAt");
    if (id !== undefined) {
      accounts = accounts.where("a.id", "=", id);
      subscriptions = subscriptions.where("accountId", "=", id);
    }
    if (deleted !== undefined) accounts = accounts.where("a.deletedAt", deleted ? "is not" : "is", null);
    const [rows, terms] = await Promise.all([accounts.execute(), subscriptions.execute()]);
    const termsOf = Map.groupBy(terms, ({ accountId }) => accountId);
    return rows.map((row) =>
      viewAccount(row, row.ownerUserId, viewSubscription((termsOf.get(row.id) ?? []).map(toTerm), clock.now())),
    );
  }

  const subscriptions = createSubscriptions(context, context.invoices);

  async function requirePrice(packageName: string, agreedCents: number): Promise<void> {
    const { dueCents } = await subscriptions.previewFirst(packageName);
    if (dueCents !== agreedCents)
      throw new RequestError("price_changed", `the price has changed: ${euros(dueCents)} net is due now`);
  }

  return {
    users: createUsers(context),
    keys: createKeys(context),
    subscriptions,
    invoices: createInvoices(context, context.invoices),
    billing: createBillingDetails(context),
    life: createAccountLife(context),

    /** Creates an account, invites its Owner, and orders a package if one is named. */
    async create(wish: NewAccount) {
      if (wish.package !== undefined && wish.dueCents !== undefined) await requirePrice(wish.package, wish.dueCents);
      const id = asId<AccountId>(uuidv7(clock));
      const packageName =
        wish.package === undefined ? undefined : packageNamed(await readPackages(kysely), id, wish.package);
      const deed = {
        action: "account.create",
        on: { kind: "account", id },
        details: { package: packageName },
      } as const;
      return audited(context, deed, async (transaction) => {
        const nowMs = clock.now();
        const account = await insertAccount(transaction, id, wish.name, nowMs);
        const owner = { accountId: account.id, email: wish.ownerEmail, role: "owner" } as const;
        const { user, invitationUrl } = await insertInvitedUser(context, transaction, owner);
        const subscription = packageName
          ? await changePackage(transaction, account.id, { action: "order", package: packageName }, nowMs)
          : viewSubscription([], nowMs);
        return { ...viewAccount(account, user.id, subscription), invitationUrl };
      });
    },

    /** Lists accounts, oldest first. `deleted`: lists deleted accounts instead. */
    list: (deleted = false) => read({ deleted }),

    show: async (id: AccountId) => found((await read({ id }))[0], "account", id),
  };
}

export function insertAccount(transaction: Transaction<Schema>, id: AccountId, name: string, nowMs: number) {
  return transaction
    .insertInto("accounts")
    .values({ id, name: name.trim(), createdAt: instantText(nowMs) })
    .returningAll()
    .executeTakeFirstOrThrow();
}

function viewAccount<Owner extends string | null>(
  account: Pick<Selectable<Schema["accounts"]>, "id" | "name" | "createdAt" | "blockedAt" | "deletedAt">,
  ownerUserId: Owner,
  subscription: SubscriptionView,
) {
  const { id, name, createdAt, blockedAt, deletedAt } = account;
  return { id, name, ownerUserId, ...subscription, ...plainRow({ createdAt, blockedAt, deletedAt }) };
}
