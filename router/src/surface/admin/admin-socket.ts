/** Serves the contract's routes to the operator, on a Unix socket in the state directory (mode 0600). */
import fastify from "fastify";
import { Type, type TSchema } from "typebox";
import { asId, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { listenOnSocket } from "@weiche/shared/program/admin-socket.ts";
import { closeServer } from "@weiche/shared/program/ops-server.ts";
import type { Database } from "../../db/database.ts";
import { operator } from "../../rights/accounts-context.ts";
import { rowsMax } from "../../rights/list-page.ts";
import { found, Refused } from "../../rights/refused.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { id as idSchema, object, type Route } from "../contract/route.ts";
import { addRoutes, type Call, type ErrorAnswer, type Handlers } from "../server/add-routes.ts";
import { asRefused, refusals } from "../server/refusal.ts";

export interface AdminSocketDeps {
  readonly database: Pick<Database, "kysely">;
  readonly handlers: Handlers<Contract>;
  readonly events: AdminEvents;
}

export interface AdminEvents {
  /** A command failed for a reason that is ours. */
  adminFailed(error: unknown): void;
}

/** Replies of routes that are `of` an account have its id as a further member, `accountId`. */
export async function openAdminSocket(socketPath: string, deps: AdminSocketDeps): Promise<AsyncDisposable> {
  const { database, handlers, events } = deps;
  const app = fastify({
    exposeHeadRoutes: false,
    ajv: { customOptions: { allErrors: true, coerceTypes: false, removeAdditional: false, useDefaults: false } },
  });
  addRoutes(app, contract, forOperator(handlers, database), {
    serve: asServed,
    admit: () => ({ session: undefined, origin: operator, address: operator.source }),
    answerTo: (error) => answerTo(error, events),
  });
  await app.ready();
  await listenOnSocket(app.server, socketPath);
  return {
    async [Symbol.asyncDispose]() {
      await closeServer(app.server);
      await app.close();
    },
  };
}

/** The route with the operator's query and body: `account` selects the account, `limit` takes the place of pages. */
function asServed(route: Route): Route | undefined {
  const { may, of, operator: other = {}, body } = route;
  if (!may.includes("operator")) return undefined;
  const { page: _page, pageSize, ...query }: Record<string, TSchema> = (other.query ?? route.query)?.properties ?? {};
  const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 999_999_999 }));
  return {
    ...route,
    query: object({
      ...(of === "account" && { account: Type.Optional(idSchema) }),
      ...(pageSize && { limit }),
      ...query,
    }),
    body: other.body ?? body,
  };
}

/** Finds the account before each handler is called, and asks for whole lists or their first `limit` items. */
function forOperator(handlers: Handlers<Contract>, database: AdminSocketDeps["database"]): Handlers<Contract> {
  const routes: Readonly<Record<string, Route>> = contract;
  const operated = Object.entries(handlers).map(([name, handler]) => {
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
  return Object.fromEntries(operated) as Handlers<Contract>;
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
  { kysely }: AdminSocketDeps["database"],
): Promise<AccountId> {
  const named = Object.assign({}, params, query, body) as Named;
  if (of === "account" && named.account !== undefined) {
    const accounts = kysely.selectFrom("accounts").select("id").where("id", "=", asId<AccountId>(named.account));
    return found(await accounts.executeTakeFirst(), "account", named.account).id;
  }
  const id = of === "account" ? named.userId : named.id;
  if (id === undefined) throw new Refused("invalid", "account is missing");
  const rows = kysely.selectFrom(of === "key" ? "apiKeys" : "users").select("accountId");
  const row = await rows.where("id", "=", asId<UserId & KeyId>(id)).executeTakeFirst();
  return found(row, of === "key" ? "key" : "user", id).accountId;
}

function answerTo(error: unknown, events: AdminEvents): ErrorAnswer {
  const refused = asRefused(error);
  if (refused) {
    const { kind: code, message: error, details } = refused;
    return { status: refusals[code].status, headers: {}, body: { error, code, details } };
  }
  events.adminFailed(error);
  return { status: 500, headers: {}, body: { error: "the router failed; its log says why" } };
}
