/** Handlers of an account's users. */
import { parseFactor } from "@weiche/shared/credits.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { found, RequestError } from "../../rights/request-error.ts";
import { listUsers } from "../../accounts/user-list.ts";
import type { Restrictions } from "../../accounts/users.ts";
import type { Call, Handlers } from "../server/add-routes.ts";
import { pageWindow } from "../contract/route.ts";
import type { usersContract } from "../contract/users.ts";
import { noSuch } from "../server/error-answers.ts";
import { countLink } from "./identity.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function usersHandlers({
  accounts,
  identity,
  database,
  clock,
  models,
}: HandlerDeps): Handlers<typeof usersContract> {
  const one = async (accountId: AccountId, id: string) => {
    const page = { limit: 1, offset: 0, sort: "email", order: "asc" } as const;
    const { items } = await listUsers(database, accountId, { id: asId<UserId>(id) }, page, clock.now());
    return found(items[0], "user", id);
  };
  const setBlocked =
    (blocked: boolean) =>
    async ({ accountId, params, origin }: Call<typeof usersContract.blockUser>) => {
      await accounts.as(origin).users.setBlocked(asId<UserId>(params.id), blocked);
      return one(accountId, params.id);
    };
  return {
    async listUsers({ accountId, query }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const { sort = "email", order = "asc", ...filter } = query;
      const list = await listUsers(database, accountId, filter, { ...window, sort, order }, clock.now());
      return { ...list, page, pageSize };
    },
    showUser: ({ accountId, params }) => one(accountId, params.id),
    async createUser({ session, accountId, body, origin, address }) {
      const wish = { accountId, email: body.email, role: body.role, ...readRestrictions(body, models()) };
      // Counted, because the answer reveals whether the address is in use.
      if (session) await countLink(identity, session, address);
      const { id, invitationUrl } = await accounts.as(origin).users.create(wish);
      const mailed = await identity.invitations.send(id, invitationUrl);
      return { user: await one(accountId, id), invitationUrl, mailed };
    },
    async updateUser({ accountId, params, body, origin }) {
      const wish = { ...(body.role && { role: body.role }), ...readRestrictions(body, models()) };
      await accounts.as(origin).users.update(asId<UserId>(params.id), wish);
      return one(accountId, params.id);
    },
    blockUser: setBlocked(true),
    unblockUser: setBlocked(false),
    async deleteUser({ params, origin }) {
      await accounts.as(origin).users.delete(asId<UserId>(params.id));
    },
  };
}

/** Reads restrictions. Refuses unknown models, because a restriction to unknown models would block every request. */
export function readRestrictions(
  wish: { readonly allowedModels?: readonly string[] | null; readonly creditLimit?: string | null },
  models: Iterable<string>,
): Restrictions {
  const { allowedModels, creditLimit } = wish;
  const known = [...models];
  const details = (allowedModels ?? []).flatMap((model, index) =>
    known.includes(model) ? [] : [{ param: `allowedModels.${index}`, code: "not_allowed" }],
  );
  const unknown = allowedModels?.find((model) => !known.includes(model));
  if (unknown !== undefined) throw new RequestError("invalid", noSuch("model", unknown, known), { details });
  return { allowedModels, creditLimit: typeof creditLimit === "string" ? parseFactor(creditLimit) : creditLimit };
}
