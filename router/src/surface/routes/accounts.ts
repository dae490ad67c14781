/** Accounts, which the operator makes and looks at. */
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import type { accountsContract } from "../contract/accounts.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function accountsHandlers({ accounts, identity }: HandlerDeps): Handlers<typeof accountsContract> {
  return {
    async createAccount({ body, origin }) {
      const created = await accounts.as(origin).create(body);
      const mailed = await identity.invitations.send(asId<UserId>(created.ownerUserId), created.invitationUrl);
      return { ...created, mailed };
    },
    listAccounts: () => accounts.list(),
    showAccount: ({ params }) => accounts.show(asId<AccountId>(params.id)),
  };
}
