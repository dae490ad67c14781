/** Handlers of accounts, which only the operator may call. */
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { accountNamed } from "../../accounts/named.ts";
import { RequestError } from "../../rights/request-error.ts";
import type { accountsContract } from "../contract/accounts.ts";
import type { Call, Handlers } from "../server/add-routes.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function accountsHandlers({ accounts, identity, database }: HandlerDeps): Handlers<typeof accountsContract> {
  type Named = Pick<Call<typeof accountsContract.blockAccount>, "params" | "origin">;
  async function change(
    { params, origin }: Named,
    work: (life: typeof accounts.life, id: AccountId) => Promise<unknown>,
  ) {
    const id = await accountNamed(database, params.id);
    await work(accounts.as(origin).life, id);
    return accounts.show(id);
  }
  return {
    async createAccount({ body, origin, credential }) {
      if (credential !== undefined && body.package !== undefined)
        throw new RequestError("forbidden", "the console orders no packages: use weiche subscription order");
      const created = await accounts.as(origin).create(body);
      const mailed = await identity.invitations.send(asId<UserId>(created.ownerUserId), created.invitationUrl);
      return { ...created, mailed };
    },
    quoteAccount: ({ body }) => accounts.subscriptions.previewFirst(body.package),
    listAccounts: ({ query }) => accounts.list(query.deleted ?? false),
    showAccount: async ({ params }) => accounts.show(await accountNamed(database, params.id)),
    renameAccount: (call) => change(call, (life, id) => life.rename(id, call.body.name)),
    blockAccount: (call) => change(call, (life, id) => life.setBlocked(id, true)),
    unblockAccount: (call) => change(call, (life, id) => life.setBlocked(id, false)),
    async previewAccountDeletion({ params }) {
      const id = await accountNamed(database, params.id);
      const counts = await accounts.life.deletion(id);
      return { ...(await accounts.show(id)), ...counts };
    },
    async deleteAccount({ params, origin }) {
      const id = asId<AccountId>(params.id);
      const counts = await accounts.as(origin).life.delete(id);
      return { ...(await accounts.show(id)), ...counts };
    },
  };
}
