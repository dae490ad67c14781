/** API keys: members see and change their own, Admins see and revoke all, Owners and the operator do everything. */
import { Type } from "typebox";
import {
  creditLimit,
  credits,
  id,
  instant,
  modelList,
  name,
  object,
  ofAccount,
  ofKey,
  orNull,
  pageOf,
  pageQuery,
  type RouteTable,
} from "./route.ts";

const state = Type.Enum(["active", "blocked-by-limit", "user-blocked", "expired", "revoked"]);

const key = object({
  id,
  name: Type.String(),
  userId: id,
  userEmail: Type.String(),
  state,
  reason: orNull(
    Type.Enum(
      [
        "revoked",
        "regenerated",
        "expired",
        "user-blocked",
        "account-blocked",
        "user-limit",
        "key-limit",
        "no-package",
        "quota-exhausted",
      ],
      {
        description:
          "Why it cannot be used; those of the account, its package and its quota concern every key of the account. null: it can.",
      },
    ),
  ),
  lastFour: Type.String(),
  allowedModels: modelList,
  usableModels: orNull(Type.Array(Type.String(), { description: "What the user's own restriction leaves of them." })),
  creditLimit: orNull(credits),
  creditsUsed: credits,
  binding: orNull(
    object(
      { by: Type.Enum(["key", "user", "package"]), used: credits, limit: credits, left: credits },
      { description: "The limit of which the least is left. null: no package." },
    ),
  ),
  expiresAt: orNull(instant),
  lastUsedAt: orNull(instant),
  createdAt: instant,
});

const settings = {
  allowedModels: Type.Optional(modelList),
  creditLimit: Type.Optional(orNull(creditLimit)),
  expiresAt: Type.Optional(orNull(instant)),
};

/** Only values known from the creation itself: a further query might fail, and the value is shown only once. */
const newKey = object({
  key: object({
    id,
    userId: id,
    name: Type.String(),
    state,
    lastFour: Type.String(),
    allowedModels: modelList,
    creditLimit: orNull(credits),
    expiresAt: orNull(instant),
    createdAt: instant,
  }),
  value: Type.String({ description: "The key itself: shown here and never again." }),
});

export const keysContract = {
  listKeys: {
    summary: "Keys with their state, its reason, what they used in this billing period and the limit that binds",
    ...ofAccount,
    query: pageQuery(Type.Enum(["name", "user", "state", "used", "lastUsed", "created", "expires"]), {
      state: Type.Optional(state),
      userId: Type.Optional(id),
    }),
    reply: pageOf(key),
  },
  showKey: {
    summary: "One key",
    ...ofKey,
    reply: key,
  },
  createKey: {
    summary: "A new key, at most 25 active ones per user. An Owner may make one for another user",
    ...ofAccount,
    body: object({ name, userId: Type.Optional(id), ...settings }),
    reply: newKey,
    status: 201,
  },
  updateKey: {
    summary: "Name, models, credit limit, expiry",
    ...ofKey,
    body: object({ name: Type.Optional(name), ...settings }, { minProperties: 1 }),
    reply: key,
  },
  regenerateKey: {
    summary: "A new key with the same settings; the old one stops at once",
    ...ofKey,
    reply: newKey,
    status: 201,
  },
  revokeKey: {
    summary: "Stops it at once and for good",
    ...ofKey,
    reply: key,
  },
} as const satisfies RouteTable;
