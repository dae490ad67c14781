/** The routes of the operators' API: what each takes, checked before it is looked at. Answers are the views as they are. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type, type Static, type TSchema } from "typebox";
import { nearest } from "@weiche/shared/files/config-file.ts";
import { parseFactor } from "@weiche/shared/credits.ts";
import { asId, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { Refused } from "../../rights/refused.ts";
import type { Restrictions } from "../../accounts/users.ts";
import { usageParts } from "../../usage/usage-parts.ts";
import { isDay, readInstantText } from "../../db/calendar-text.ts";
import type { AdminContext } from "./admin-api.ts";

const closed = { additionalProperties: false } as const;
const id = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });
// Neither blank nor with control characters, which could forge lines on an operator's screen.
const name = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]+$",
});
const email = Type.String({
  maxLength: 254,
  pattern: "^[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+@[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+$",
});
const day = Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$" });
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const role = Type.Enum(["owner", "admin", "member"]);
const restrictions = {
  allowedModels: Type.Optional(orNull(Type.Array(Type.String(), { minItems: 1 }))),
  /** Credits, such as "1000" or "0.5". */
  creditLimit: Type.Optional(orNull(Type.String())),
};
const expiresAt = Type.Optional(orNull(Type.String()));

const byId = Type.Object({ id }, closed);
const newAccount = Type.Object({ name, ownerEmail: email, package: Type.Optional(Type.String()) }, closed);
const newUser = Type.Object({ accountId: id, email, role, ...restrictions }, closed);
const userChange = Type.Object({ role: Type.Optional(role), ...restrictions }, { ...closed, minProperties: 1 });
const newKey = Type.Object({ userId: id, name, expiresAt, ...restrictions }, closed);
const keyChange = Type.Object(
  { name: Type.Optional(name), expiresAt, ...restrictions },
  { ...closed, minProperties: 1 },
);
const usageOf = Type.Object(
  { account: id, from: Type.Optional(day), to: Type.Optional(day), by: Type.Optional(Type.Enum([...usageParts])) },
  closed,
);

export function addAdminRoutes(app: FastifyInstance, context: AdminContext): void {
  const { accounts } = context;
  const { users, keys } = accounts;
  const schema = <P extends TSchema, B extends TSchema>(params: P, body: B) => ({ schema: { params, body } });

  app.post("/accounts", { schema: { body: newAccount } }, async (request) => {
    const created = await accounts.create(body(request, newAccount));
    return { ...created, ...(await sent(created.ownerUserId, created.invitationUrl)) };
  });
  app.get("/accounts", () => accounts.list());
  app.get("/accounts/:id", { schema: { params: byId } }, (request) => accounts.show(asId<AccountId>(idOf(request))));

  app.post("/users", { schema: { body: newUser } }, async (request) => {
    const { accountId, ...wish } = body(request, newUser);
    const { email: address, role: wished } = wish;
    const restricted = restrict(wish);
    const created = await users.create({
      accountId: asId<AccountId>(accountId),
      email: address,
      role: wished,
      ...restricted,
    });
    return { ...created, ...(await sent(created.id, created.invitationUrl)) };
  });
  app.patch("/users/:id", schema(byId, userChange), (request) => {
    const { role: wished, ...wish } = body(request, userChange);
    return users.update(asId<UserId>(idOf(request)), { ...(wished && { role: wished }), ...restrict(wish) });
  });
  app.post("/users/:id/delete", { schema: { params: byId } }, (request) => users.delete(asId<UserId>(idOf(request))));
  for (const [action, blocked] of [
    ["block", true],
    ["unblock", false],
  ] as const) {
    app.post(`/users/:id/${action}`, { schema: { params: byId } }, (request) =>
      users.setBlocked(asId<UserId>(idOf(request)), blocked),
    );
  }

  app.post("/keys", { schema: { body: newKey } }, (request) => {
    const { userId, name: label, expiresAt: expiry, ...wish } = body(request, newKey);
    return keys.create(asId<UserId>(userId), { name: label, ...expires(expiry), ...restrict(wish) });
  });
  app.patch("/keys/:id", schema(byId, keyChange), (request) => {
    const { name: label, expiresAt: expiry, ...wish } = body(request, keyChange);
    const rename = label === undefined ? {} : { name: label };
    return keys.update(asId<KeyId>(idOf(request)), { ...rename, ...expires(expiry), ...restrict(wish) });
  });
  app.post("/keys/:id/regenerate", { schema: { params: byId } }, (request) =>
    keys.regenerate(asId<KeyId>(idOf(request))),
  );
  app.post("/keys/:id/revoke", { schema: { params: byId } }, (request) => keys.revoke(asId<KeyId>(idOf(request))));

  app.get("/usage", { schema: { querystring: usageOf } }, (request) => {
    const { account, ...wish } = request.query as Static<typeof usageOf>;
    for (const date of [wish.from, wish.to]) if (date !== undefined) requireDay(date);
    if (wish.from !== undefined && wish.to !== undefined && wish.from > wish.to)
      throw new Refused("invalid", `${wish.from} is after ${wish.to}`);
    return context.usage(asId<AccountId>(account), wish);
  });
  app.get("/nodes", () => context.nodes());
  app.get("/models", () => context.models());
  app.post("/catalogue/reload", async () => {
    await context.reloadCatalogue();
    return { models: context.models().length };
  });

  async function sent(userId: string, invitationUrl: string) {
    return { mailed: (await context.sendInvitation?.(asId<UserId>(userId), invitationUrl)) ?? null };
  }

  function restrict(wish: { allowedModels?: string[] | null; creditLimit?: string | null }): Restrictions {
    const { allowedModels, creditLimit } = wish;
    for (const model of allowedModels ?? []) requireModel(model);
    return {
      ...(allowedModels === undefined ? {} : { allowedModels }),
      ...(creditLimit === undefined ? {} : { creditLimit: creditLimit === null ? null : creditsFrom(creditLimit) }),
    };
  }

  /** A mistyped model would shut its user out in silence. */
  function requireModel(model: string): void {
    const known = context.models().map((entry) => entry.id);
    if (known.includes(model)) return;
    const near = nearest(model, known);
    throw new Refused(
      "invalid",
      `there is no model "${model}"${near === undefined ? "" : `; did you mean "${near}"?`}`,
    );
  }
}

function body<Schema extends TSchema>(request: FastifyRequest, _schema: Schema): Static<Schema> {
  return request.body as Static<Schema>;
}

function idOf(request: FastifyRequest): string {
  return (request.params as Static<typeof byId>).id;
}

function creditsFrom(text: string) {
  const credits = parseFactor(text);
  if (credits === undefined)
    throw new Refused("invalid", "credits are a number with at most three places, below a billion");
  return credits;
}

function expires(text: string | null | undefined): { expiresMs?: number | null } {
  if (text === undefined) return {};
  if (text === null) return { expiresMs: null };
  const expiresMs = readInstantText(text);
  if (expiresMs === undefined)
    throw new Refused("invalid", "the expiry is not an instant such as 2027-01-31T18:00:00+01:00");
  return { expiresMs };
}

function requireDay(text: string): void {
  if (!isDay(text)) throw new Refused("invalid", `there is no day ${text}`);
}
