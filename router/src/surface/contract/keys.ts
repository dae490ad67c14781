/** Routes of API keys: members see and change their own, Admins see and revoke all, Owners and the operator do everything. */
import { Type } from "typebox";
import {
  count,
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
          "Why the key cannot be used. Reasons of the account, its package and its quota concern every key of the account. null if the key is usable.",
      },
    ),
  ),
  lastFour: Type.String(),
  allowedModels: modelList,
  usableModels: orNull(Type.Array(Type.String(), { description: "The allowed models that the user may also use." })),
  creditLimit: orNull(credits),
  creditsUsed: credits,
  binding: orNull(
    object(
      { by: Type.Enum(["key", "user", "package"]), used: credits, limit: credits, left: credits },
      { description: "The limit with the fewest credits left. null without a package." },
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

/** Contains only values from the creation itself. Another query might fail, and the value is shown only once. */
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
  value: Type.String({ description: "The key itself. It is shown only here." }),
});

export const keysContract = {
  listKeys: {
    summary: "List keys with their state, its reason, their use in this billing period and the tightest limit",
    ...ofAccount,
    query: pageQuery(Type.Enum(["name", "user", "state", "used", "lastUsed", "created", "expires"]), {
      state: Type.Optional(state),
      userId: Type.Optional(id),
      revoked: Type.Optional(Type.Boolean({ description: "If false, revoked keys are left out. Defaults to true." })),
    }),
    reply: pageOf(key, {
      revoked: Type.Integer({ minimum: 0, description: "Revoked keys that the caller may see, whatever the filters." }),
      own: orNull(
        object(
          { used: count, max: count },
          { description: "The caller's keys that are neither revoked nor expired. null for the operator." },
        ),
      ),
    }),
  },
  showKey: {
    summary: "Show a key",
    ...ofKey,
    reply: key,
  },
  createKey: {
    summary: "Create a key. A user may have 25 active keys. An Owner may create keys for other users",
    ...ofAccount,
    body: object({ name, userId: Type.Optional(id), ...settings }),
    reply: newKey,
    status: 201,
  },
  updateKey: {
    summary: "Change a key's name, models, credit limit or expiry",
    ...ofKey,
    body: object({ name: Type.Optional(name), ...settings }, { minProperties: 1 }),
    reply: key,
  },
  regenerateKey: {
    summary: "Replace a key with a new one of the same settings. The old key stops at once",
    ...ofKey,
    reply: newKey,
    status: 201,
  },
  revokeKey: {
    summary: "Revoke a key permanently",
    ...ofKey,
    reply: key,
  },
} as const satisfies RouteTable;
