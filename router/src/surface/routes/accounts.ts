/** Accounts, which the operator makes and looks at. */
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import type { Identity } from "../../accounts/identity.ts";
import type { accountsContract } from "../contract/accounts.ts";
import type { Handlers } from "../server/add-routes.ts";

export interface AccountRouteDeps {
  readonly accounts: Accounts;
  readonly identity: Pick<Identity, "invitations">;
}

export function accountsHandlers({ accounts, identity }: AccountRouteDeps): Handlers<typeof accountsContract> {
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
