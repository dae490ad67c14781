/** Routes of an account's users. */
import { Type } from "typebox";
import {
  count,
  creditLimit,
  credits,
  email,
  id,
  instant,
  modelList,
  object,
  ofAccountForAdministrators,
  ofUser,
  orNull,
  pageOf,
  pageQuery,
  role,
  type RouteTable,
} from "./route.ts";

const state = Type.Enum(["active", "invited", "uninvited", "blocked"], {
  description:
    "`invited`: has not joined yet. `uninvited`: cannot join, because the invitation expired or was withdrawn.",
});

const user = object({
  id,
  email: Type.String(),
  name: orNull(Type.String()),
  role,
  state,
  reason: orNull(
    Type.Enum(["blocked", "invited", "invitation-expired", "invitation-withdrawn", "user-limit"], {
      description: "Why the user cannot sign in or use their keys, or null.",
    }),
  ),
  invitedUntil: orNull(instant),
  allowedModels: modelList,
  creditLimit: orNull(credits),
  creditsUsed: credits,
  limitReached: Type.Boolean(),
  keys: count,
  lastLoginAt: orNull(instant),
  createdAt: instant,
});

const restrictions = {
  allowedModels: Type.Optional(modelList),
  creditLimit: Type.Optional(orNull(creditLimit)),
};

export const usersContract = {
  listUsers: {
    summary:
      "List the account's users with role, state and its reason, limits, credits used in this billing period, and usable keys",
    ...ofAccountForAdministrators,
    query: pageQuery(Type.Enum(["email", "role", "state", "used", "keys", "lastLogin", "created"]), {
      role: Type.Optional(role),
      state: Type.Optional(state),
    }),
    reply: pageOf(user),
  },
  showUser: {
    summary: "Show a user",
    ...ofUser,
    reply: user,
  },
  createUser: {
    summary: "Invite a user. The answer shows the link once; it is also mailed if `smtp` is configured",
    ...ofAccountForAdministrators,
    body: object({ email, role, ...restrictions }),
    reply: object({
      user,
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "Whether the link was mailed. null if the router sends no mail." })),
    }),
    status: 201,
  },
  updateUser: {
    summary:
      "Change a user's role, allowed models or credit limit. Only Owners may change or make Owners, and the last Owner stays. A new Owner's earlier links stop working",
    ...ofUser,
    body: object({ role: Type.Optional(role), ...restrictions }, { minProperties: 1 }),
    reply: user,
  },
  blockUser: {
    summary: "Block a user: stop their keys, their sessions and the links that they made, at once",
    ...ofUser,
    reply: user,
  },
  unblockUser: {
    summary: "Unblock a user. Their keys work again",
    ...ofUser,
    reply: user,
  },
  deleteUser: {
    summary: "Delete a user permanently. Revokes their keys and frees their address. Usage and audit log are kept",
    ...ofUser,
  },
} as const satisfies RouteTable;
