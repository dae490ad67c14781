/**
 * Turns the contract's routes into the operator's routes, for the admin socket and the console. Replies of routes with
 * `of` also carry the account's id as `accountId`.
 */
import { Type, type TObject, type TSchema } from "typebox";
import type { AccountId } from "@weiche/shared/ids.ts";
import { accountNamed, keyNamed, userNamed } from "../../accounts/named.ts";
import type { Database } from "../../db/database.ts";
import { rowsMax } from "../../rights/list-page.ts";
import { RequestError } from "../../rights/request-error.ts";
import { accountName, keyName, object, userName, type Route, type Routes } from "../contract/route.ts";
import type { Call, Handlers } from "./add-routes.ts";

/**
 * Returns the route with the operator's query and body, or undefined if the operator may not call it. `account` selects the
 * account, `limit` replaces pages, and users and keys may be given by other names than their ids.
 */
export function asOperated(route: Route): Route | undefined {
  const { may, of, operator: other = {}, body } = route;
  if (!may.includes("operator")) return undefined;
  const { page: _page, pageSize, ...query }: Record<string, TSchema> = (other.query ?? route.query)?.properties ?? {};
  const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 999_999_999 }));
  return {
    ...route,
    ...((of === "user" || of === "key") && { params: object({ id: of === "user" ? userName : keyName }) }),
    query: object({
      ...((of === "account" || of === "key") && { account: Type.Optional(accountName) }),
      ...(of === "key" && { user: Type.Optional(userName) }),
      ...(pageSize && { limit }),
      ...query,
      ...(query["userId"] && { userId: Type.Optional(userName) }),
    }),
    body: withUserNamed(other.body ?? body),
  };
}

function withUserNamed(body: TObject | undefined): TObject | undefined {
  if (!body?.properties["userId"]) return body;
  return { ...body, properties: { ...body.properties, userId: userName } };
}

/**
 * Wraps the handlers: finds the account, user and key of a call by their names, and requests whole lists or their first
 * `limit` items.
 */
export function operated<C extends Routes>(routes: C, handlers: Handlers<C>, database: Database): Handlers<C> {
  const all = Object.entries(handlers).map(([name, handler]) => {
    const answer = async (call: Call<Route>) => {
      const { of } = routes[name]!;
      const meant = of ? await meantBy(of, call, database) : call;
      const query = meant.query as unknown as { readonly limit?: number };
      const asked = { ...call, ...meant, query: { ...query, pageSize: query.limit ?? rowsMax } };
      const reply = await (handler as (call: object) => Promise<object | void>)(asked);
      return meant.accountId && reply ? { ...reply, accountId: meant.accountId } : reply;
    };
    return [name, answer];
  });
  return Object.fromEntries(all) as Handlers<C>;
}

interface Named {
  readonly id?: string;
  readonly account?: string;
  readonly user?: string;
  readonly userId?: string;
}

/** A call's parameters with names replaced by ids, and their account. */
interface Meant {
  readonly accountId: AccountId | undefined;
  readonly params?: object | undefined;
  readonly query?: object | undefined;
  readonly body?: object | undefined;
}

/**
 * Finds the account: the account of the user or key `id` in the path, the account named by `account`, or the account of
 * the user `userId`.
 */
async function meantBy(of: NonNullable<Route["of"]>, call: Call<Route>, rows: Database): Promise<Meant> {
  const { params, query, body } = call as unknown as Readonly<Record<"params" | "query" | "body", Named | undefined>>;
  const { id = "", account, user, userId }: Named = { ...params, ...query, ...body };
  const accountId = account === undefined ? undefined : await accountNamed(rows, account);
  if (of === "user") {
    const found = await userNamed(rows, id);
    return { accountId: found.accountId, params: { ...params, id: found.id }, query, body };
  }
  if (of === "key") {
    const scope = { accountId, userId: user === undefined ? undefined : (await userNamed(rows, user)).id };
    const found = await keyNamed(rows, id, scope);
    return { accountId: found.accountId, params: { ...params, id: found.id }, query, body };
  }
  const whose = userId === undefined ? undefined : await userNamed(rows, userId);
  if (!accountId && !whose) throw new RequestError("invalid", "account is missing");
  const withId = (part: Named | undefined) => (part?.userId === undefined ? part : { ...part, userId: whose!.id });
  return { accountId: accountId ?? whose!.accountId, params, query: withId(query), body: withId(body) };
}
