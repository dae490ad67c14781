/** The operators' API of how an account, its people and their keys stand: what the portal shows of them, for any account. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type, type Static } from "typebox";
import { asId, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { auditEntries } from "../../rights/audit-page.ts";
import { listKeys, type KeyFilter } from "../../accounts/key-list.ts";
import { rowsMax } from "../../rights/list-page.ts";
import { found, Refused } from "../../rights/refused.ts";
import { listUsers, type UserFilter } from "../../accounts/user-list.ts";
import { readInstantText } from "../../db/calendar-text.ts";
import { viewAccountCredits, type AccountCreditsContext } from "./account-credits.ts";

const closed = { additionalProperties: false } as const;
const id = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });
const limit = Type.Optional(Type.String({ pattern: "^([1-9][0-9]{0,2}|1000)$" }));
const number = Type.Optional(Type.String({ pattern: "^[1-9][0-9]{0,8}$" }));
const byId = Type.Object({ id }, closed);
const ofAccount = Type.Object({ account: id }, closed);
const keysOf = Type.Union([Type.Object({ user: id }, closed), ofAccount]);
/** Without control characters: the database cannot hold a NUL. */
const text = Type.Optional(Type.String({ maxLength: 60, pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$" }));
const auditOf = Type.Object(
  { account: id, actor: text, object: text, action: text, from: text, to: text, limit, before: number },
  closed,
);

/** As they were made. */
const all = { limit: rowsMax, offset: 0, sort: "created", order: "asc" } as const;

export function addAccountRoutes(app: FastifyInstance, context: AccountCreditsContext): void {
  const { accounts, database, clock } = context;

  app.get("/users", { schema: { querystring: ofAccount } }, (request) => users(accountAsked(request), {}));
  app.get("/users/:id", { schema: { params: byId } }, async (request) => {
    const user = asId<UserId>(idOf(request));
    return found((await users(await accountOf("users", user), { id: user }))[0], "user", user);
  });
  app.get("/keys", { schema: { querystring: keysOf } }, async (request) => {
    const asked = request.query as Static<typeof keysOf>;
    if ("account" in asked) return keys(asId<AccountId>(asked.account), {});
    const user = asId<UserId>(asked.user);
    return keys(await accountOf("users", user), { userId: user });
  });
  app.get("/keys/:id", { schema: { params: byId } }, async (request) => {
    const key = asId<KeyId>(idOf(request));
    return (await keys(await accountOf("apiKeys", key), { id: key }))[0]!;
  });
  app.get("/credits", { schema: { querystring: ofAccount } }, (request) =>
    viewAccountCredits(context, accountAsked(request)),
  );
  app.get("/audit", { schema: { querystring: auditOf } }, async (request) => {
    const { account, limit: wanted = "100", before, ...filter } = request.query as Static<typeof auditOf>;
    for (const instant of [filter.from, filter.to])
      if (instant !== undefined && readInstantText(instant) === undefined)
        throw new Refused("invalid", `there is no instant ${instant}`);
    await accounts.show(asId<AccountId>(account)); // or there is no such account
    const page = { limit: Number(wanted), ...(before === undefined ? {} : { before: Number(before) }) };
    const entries = await auditEntries(database, asId<AccountId>(account), filter, page);
    return entries.map(({ object: { kind, id: objectId, name }, ...entry }) => ({
      ...entry,
      object: `${kind} ${objectId}`,
      objectName: name,
    }));
  });

  async function users(accountId: AccountId, filter: UserFilter) {
    const { items } = await listUsers(database, accountId, filter, all, clock.now());
    return items.map((user) => ({ ...user, accountId }));
  }

  async function keys(accountId: AccountId, filter: KeyFilter) {
    const { items } = await listKeys(database, accountId, filter, all, clock.now());
    return items.map((key) => ({ ...key, accountId }));
  }

  async function accountOf(table: "users" | "apiKeys", subject: UserId | KeyId): Promise<AccountId> {
    const rows = database.kysely.selectFrom(table).select("accountId").where("id", "=", subject);
    return found(await rows.executeTakeFirst(), table === "users" ? "user" : "key", subject).accountId;
  }
}

function accountAsked(request: FastifyRequest): AccountId {
  return asId<AccountId>((request.query as Static<typeof ofAccount>).account);
}

function idOf(request: FastifyRequest): string {
  return (request.params as Static<typeof byId>).id;
}
