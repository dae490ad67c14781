/** Accounts, which the operator makes and looks at. */
import { Type } from "typebox";
import { subscriptionFields } from "./package.ts";
import { byId, email, id, instant, name, object, orNull, type Routes } from "./route.ts";

const fields = { id, name: Type.String(), ownerUserId: id, ...subscriptionFields, createdAt: instant };

export const accountsContract = {
  createAccount: {
    method: "POST",
    path: "/accounts",
    summary: "A new account with its Owner, who is invited, and a package if one is named",
    may: ["operator"],
    body: object({
      name,
      ownerEmail: email,
      package: Type.Optional(Type.String({ description: "In any case." })),
    }),
    reply: object({
      ...fields,
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "null: no mail is sent here." })),
    }),
    status: 201,
  },
  listAccounts: {
    method: "GET",
    path: "/accounts",
    summary: "All accounts, the oldest first",
    may: ["operator"],
    reply: Type.Array(object(fields)),
  },
  showAccount: {
    method: "GET",
    path: "/accounts/:id",
    summary: "One account",
    may: ["operator"],
    params: byId,
    reply: object(fields),
  },
} as const satisfies Routes;
