/** Routes of accounts, for the operator only. */
import { Type } from "typebox";
import { subscriptionFields } from "./package.ts";
import {
  accountName,
  cents,
  count,
  email,
  id,
  instant,
  name,
  object,
  orNull,
  packageName,
  type RouteTable,
} from "./route.ts";

const byName = object({ id: accountName });

const fields = {
  id,
  name: Type.String(),
  ownerUserId: orNull(id),
  ...subscriptionFields,
  createdAt: instant,
  blockedAt: orNull(instant),
  deletedAt: orNull(instant),
};

export const deletion = {
  goes: object(
    { users: count, keys: count, sessions: count, invitations: count, notices: count },
    { description: "Users with their addresses, usable keys, and the names of the account and all its keys." },
  ),
  stays: object(
    {
      invoiceLines: count,
      invoicedCents: cents,
      invoices: count,
      withoutInvoiceCents: cents,
      requests: count,
      auditEntries: count,
    },
    { description: "Only issued invoices contain names and addresses. Others contain none." },
  ),
};

export const accountsContract = {
  createAccount: {
    summary: "Create an account, invite its Owner, and order a package if one is given",
    may: ["operator"],
    body: object({
      name,
      ownerEmail: email,
      package: Type.Optional(Type.String({ description: "The package's name, case-insensitive." })),
      dueCents: Type.Optional(
        Type.Integer({
          minimum: 0,
          description: "The net price that was agreed to. If the price differs now, the answer is `price_changed`.",
        }),
      ),
    }),
    reply: object({
      ...fields,
      ownerUserId: id,
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "Whether the link was mailed. null if the router sends no mail." })),
    }),
    status: 201,
  },
  quoteAccount: {
    summary: "Quote a package's price for a new account: now, and for each later month",
    may: ["operator"],
    body: object({ package: Type.String({ description: "The package's name, case-insensitive." }) }),
    reply: object({ package: packageName, dueCents: cents, thenCents: orNull(cents) }),
  },
  listAccounts: {
    summary: "List all accounts, the oldest first",
    may: ["operator"],
    query: object({
      deleted: Type.Optional(Type.Boolean({ description: "If true, lists the deleted accounts instead." })),
    }),
    reply: Type.Array(object(fields)),
  },
  showAccount: {
    summary: "Show an account",
    may: ["operator"],
    params: byName,
    reply: object(fields),
  },
  renameAccount: {
    summary: "Rename an account",
    may: ["operator"],
    params: byName,
    body: object({ name }),
    reply: object(fields),
  },
  blockAccount: {
    summary: "Block an account: stop its keys and its people's access to the portal at once",
    may: ["operator"],
    params: byName,
    reply: object(fields),
  },
  unblockAccount: {
    summary: "Unblock an account's keys and people",
    may: ["operator"],
    params: byName,
    reply: object(fields),
  },
  previewAccountDeletion: {
    summary: "Show the objects that a deletion of the account would remove and keep",
    may: ["operator"],
    params: byName,
    reply: object({ ...fields, ...deletion }),
  },
  deleteAccount: {
    summary: "Delete the account permanently, and return the numbers of removed and kept objects",
    may: ["operator"],
    params: object({ id }),
    reply: object({ ...fields, ...deletion }),
  },
} as const satisfies RouteTable;
