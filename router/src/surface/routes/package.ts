/** The package of an account. */
import { formatCredits, millicredits } from "@weiche/shared/credits.ts";
import { packageChoices } from "../../subscriptions/subscription-rules.ts";
import { packageUse, type PackageUse } from "../../subscriptions/package-use.ts";
import { packages, quotaOf } from "../../subscriptions/packages.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { packageContract } from "../contract/package.ts";
import type { HandlerDeps } from "./handler-deps.ts";

export function packageHandlers({ accounts, database, clock }: HandlerDeps): Handlers<typeof packageContract> {
  return {
    async showPackage({ accountId }) {
      const use = await packageUse(database, accountId, clock.now());
      const choices = packageChoices(use.terms, use.nowMs);
      return {
        subscription: use.subscription,
        quota: viewQuota(use),
        packages: Object.values(packages).map((one) => ({
          ...one,
          creditsPerMonth: formatCredits(quotaOf(one.name)),
          actions: choices.to[one.name],
        })),
        actions: choices.alone,
      };
    },
    quotePackage: ({ accountId, body }) => accounts.subscriptions.preview(accountId, body),
    changePackage: ({ accountId, body: { quoteId, ...wish }, origin }) =>
      accounts.as(origin).subscriptions.change(accountId, wish, quoteId),
    async listInvoiceLines({ accountId }) {
      const items = await accounts.subscriptions.invoice(accountId);
      const totalCents = items.reduce((sum, { amountCents }) => sum + amountCents, 0);
      return { items, total: items.length, totalCents };
    },
  };
}

function viewQuota({ quota, used, exhaustedUntil }: PackageUse) {
  if (quota === null) return null;
  const left = millicredits(quota > used ? quota - used : 0n);
  return {
    credits: formatCredits(quota),
    used: formatCredits(used),
    left: formatCredits(left),
    exhausted: exhaustedUntil !== null,
  };
}
