/** Handlers of the own account, for its Owners. */
import type { AccountId } from "@weiche/shared/ids.ts";
import { RequestError } from "../../../rights/request-error.ts";
import type { Handlers } from "../../server/add-routes.ts";
import type { ownAccountContract } from "../../contract/own-account.ts";
import type { HandlerDeps } from "../handler-deps.ts";
import { unprovenAgain } from "../identity.ts";

export function ownAccountHandlers({ accounts, identity }: HandlerDeps): Handlers<typeof ownAccountContract> {
  async function show(accountId: AccountId) {
    const [{ id, name, createdAt }, counts] = await Promise.all([
      accounts.show(accountId),
      accounts.life.deletion(accountId),
    ]);
    return { id, name, createdAt, ...counts };
  }
  return {
    showOwnAccount: ({ session }) => show(session.user.accountId),

    async renameOwnAccount({ session, body, origin }) {
      await accounts.as(origin).life.rename(session.user.accountId, body.name);
      return show(session.user.accountId);
    },

    async closeAccount(call) {
      const { session, origin, address } = call;
      const { name, ...claim } = call.body;
      const { accountId, email } = session.user;
      const account = await show(accountId);
      if (name.trim() !== account.name)
        throw new RequestError("invalid", "this is not the account's name", {
          details: [{ param: "name", code: "wrong" }],
        });
      // Without an address, the last invoice could never be issued.
      const hasOpenLines = account.stays.withoutInvoiceCents > 0 && accounts.invoices.since !== null;
      if (hasOpenLines && (await accounts.billing.show(accountId)) === null)
        throw new RequestError("conflict", "add a billing address first: the last invoice needs it");
      const proof = await identity.prove({ email, ...claim }, { source: address, sessionId: session.id });
      if (proof.kind !== "proven") throw unprovenAgain(proof);
      await accounts.as(origin).life.delete(accountId);
      call.clearSession();
    },
  };
}
