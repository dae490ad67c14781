/**
 * Routes of the contract as the operator calls them, on the admin socket and in the console. Replies of routes that are `of`
 * an account have its id as a further member, `accountId`.
 */
import { Type, type TSchema } from "typebox";
import { asId, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { accountNamed } from "../../accounts/account-named.ts";
import type { Database } from "../../db/database.ts";
import { rowsMax } from "../../rights/list-page.ts";
import { found, Refused } from "../../rights/refused.ts";
import { accountName, object, type Route, type Routes } from "../contract/route.ts";
import type { Call, Handlers } from "./add-routes.ts";

type Rows = Pick<Database, "kysely">;

/**
 * The route with the operator's query and body; undefined: it is not for the operator. `account` selects the account,
 * `limit` may take the place of pages.
 */
export function asOperated(route: Route): Route | undefined {
  const { may, of, operator: other = {}, body } = route;
  if (!may.includes("operator")) return undefined;
  const { page: _page, pageSize, ...query }: Record<string, TSchema> = (other.query ?? route.query)?.properties ?? {};
  const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 999_999_999 }));
  return {
    ...route,
    query: object({
      ...(of === "account" && { account: Type.Optional(accountName) }),
      ...(pageSize && { limit }),
      ...query,
    }),
    body: other.body ?? body,
  };
}

/** Finds the account before each handler is called, and asks for whole lists or their first `limit` items. */
export function operated<C extends Routes>(routes: C, handlers: Handlers<C>, database: Rows): Handlers<C> {
  const all = Object.entries(handlers).map(([name, handler]) => {
    const answer = async (call: Call<Route>) => {
      const { of } = routes[name]!;
      const accountId = of && (await accountOf(of, call, database));
      const query = call.query as unknown as { readonly limit?: number };
      const asked = { ...call, accountId, query: { ...query, pageSize: query.limit ?? rowsMax } };
      const reply = await (handler as (call: object) => Promise<object | void>)(asked);
      return accountId && reply ? { ...reply, accountId } : reply;
    };
    return [name, answer];
  });
  return Object.fromEntries(all) as Handlers<C>;
}

interface Named {
  readonly id?: string;
  readonly account?: string;
  readonly userId?: string;
}

/** The account of the user or key `id` in the path, the one that `account` names, or that of the user `userId`. */
async function accountOf(
  of: NonNullable<Route["of"]>,
  { params, query, body }: Call<Route>,
  { kysely }: Rows,
): Promise<AccountId> {
  const named = Object.assign({}, params, query, body) as Named;
  if (of === "account" && named.account !== undefined) return accountNamed({ kysely }, named.account);
  const id = of === "account" ? named.userId : named.id;
  if (id === undefined) throw new Refused("invalid", "account is missing");
  const rows = kysely.selectFrom(of === "key" ? "apiKeys" : "users").select("accountId");
  const row = await rows.where("id", "=", asId<UserId & KeyId>(id)).executeTakeFirst();
  return found(row, of === "key" ? "key" : "user", id).accountId;
}
