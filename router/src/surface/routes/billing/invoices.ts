/** Handlers of invoices and of the address on them. */
import { accountNamed } from "../../../accounts/named.ts";
import type { invoicesContract } from "../../contract/invoices.ts";
import { pageWindow } from "../../contract/route.ts";
import type { Handlers } from "../../server/add-routes.ts";
import type { HandlerDeps } from "../handler-deps.ts";
import { checkDays } from "../usage.ts";

export function invoicesHandlers({ accounts, database }: HandlerDeps): Handlers<typeof invoicesContract> {
  const { invoices, billing } = accounts;
  return {
    async listInvoices({ session, query }) {
      const { accountId } = session.user;
      const { page, pageSize, ...window } = pageWindow(query);
      const [list, address] = await Promise.all([invoices.list(accountId, window), billing.show(accountId)]);
      return { ...list, page, pageSize, hasAddress: address !== null };
    },
    showInvoice: ({ session, params }) => invoices.show(params.id, session?.user.accountId),
    showBilling: async ({ accountId }) => ({ billing: await billing.show(accountId) }),
    async setBilling({ accountId, body, origin }) {
      await accounts.as(origin).billing.set(accountId, body);
      return { billing: await billing.show(accountId) };
    },
    async listIssuedInvoices({ query: { account, ...filter } }) {
      checkDays(filter);
      const accountId = account === undefined ? undefined : await accountNamed(database, account);
      return invoices.listIssued({ ...filter, accountId });
    },
    listWaitingInvoices: () => invoices.waiting(),
  };
}
