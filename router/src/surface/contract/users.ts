/** The people of an account. */
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
  description: "invited: has not joined yet; uninvited: nor can, since the invitation expired or was withdrawn.",
});

const user = object({
  id,
  email: Type.String(),
  role,
  state,
  reason: orNull(
    Type.Enum(["blocked", "invited", "invitation-expired", "invitation-withdrawn", "user-limit"], {
      description: "Why they cannot sign in, or their keys cannot be used. null: they can.",
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
      "Users of the account: role, state and its reason, limits, what they used in this billing period, number of usable keys",
    ...ofAccountForAdministrators,
    query: pageQuery(Type.Enum(["email", "role", "state", "used", "keys", "lastLogin", "created"]), {
      role: Type.Optional(role),
      state: Type.Optional(state),
    }),
    reply: pageOf(user),
  },
  showUser: {
    summary: "One user",
    ...ofUser,
    reply: user,
  },
  createUser: {
    summary: "Invites somebody. The link is shown to whoever asks, once, and mailed where mail is sent",
    ...ofAccountForAdministrators,
    body: object({ email, role, ...restrictions }),
    reply: object({
      user,
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "null: no mail is sent here." })),
    }),
    status: 201,
  },
  updateUser: {
    summary:
      "Role, allowed models, credit limit. Only Owners change Owners or make them; the last Owner stays. Who becomes Owner needs a new link, if any",
    ...ofUser,
    body: object({ role: Type.Optional(role), ...restrictions }, { minProperties: 1 }),
    reply: user,
  },
  blockUser: {
    summary: "All keys and sessions of the user stop at once, and links that they made for others",
    ...ofUser,
    reply: user,
  },
  unblockUser: {
    summary: "The user's keys work again",
    ...ofUser,
    reply: user,
  },
  deleteUser: {
    summary: "For good: keys are revoked, the address is free again; what was used and done stays on record",
    ...ofUser,
  },
} as const satisfies RouteTable;
