/** Accounts, which the operator makes, looks at, blocks and deletes. */
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

const deletion = {
  goes: object(
    { users: count, keys: count, sessions: count, invitations: count, notices: count },
    { description: "Users with their addresses, usable keys with all names." },
  ),
  stays: object(
    { invoiceLines: count, invoicedCents: cents, requests: count, auditEntries: count },
    { description: "Without names and addresses." },
  ),
};

export const accountsContract = {
  createAccount: {
    summary: "A new account with its Owner, who is invited, and a package if one is named",
    may: ["operator"],
    body: object({
      name,
      ownerEmail: email,
      package: Type.Optional(Type.String({ description: "In any case." })),
      dueCents: Type.Optional(
        Type.Integer({
          minimum: 0,
          description: "The net price that was agreed to: `price_changed` if it is another now.",
        }),
      ),
    }),
    reply: object({
      ...fields,
      ownerUserId: id,
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "null: no mail is sent here." })),
    }),
    status: 201,
  },
  quoteAccount: {
    summary: "What a package costs a new account: now, and each month from then on. Changes nothing",
    may: ["operator"],
    body: object({ package: Type.String({ description: "In any case." }) }),
    reply: object({ package: packageName, dueCents: cents, thenCents: orNull(cents) }),
  },
  listAccounts: {
    summary: "All accounts, the oldest first",
    may: ["operator"],
    query: object({ deleted: Type.Optional(Type.Boolean({ description: "true: the deleted ones instead." })) }),
    reply: Type.Array(object(fields)),
  },
  showAccount: {
    summary: "One account",
    may: ["operator"],
    params: byName,
    reply: object(fields),
  },
  renameAccount: {
    summary: "Renames an account",
    may: ["operator"],
    params: byName,
    body: object({ name }),
    reply: object(fields),
  },
  blockAccount: {
    summary: "Stops all keys of the account at once, and ends the sessions of its people",
    may: ["operator"],
    params: byName,
    reply: object(fields),
  },
  unblockAccount: {
    summary: "Lets keys and people of the account work again",
    may: ["operator"],
    params: byName,
    reply: object(fields),
  },
  previewAccountDeletion: {
    summary: "What deleting the account removes, and what it keeps",
    may: ["operator"],
    params: byName,
    reply: object({ ...fields, ...deletion }),
  },
  deleteAccount: {
    summary: "Deletes the account for good, and says what went and what stays",
    may: ["operator"],
    params: object({ id }),
    reply: object({ ...fields, ...deletion }),
  },
} as const satisfies RouteTable;
