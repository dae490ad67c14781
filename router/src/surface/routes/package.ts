/** The package of the session's account. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { formatCredits, millicredits } from "@weiche/shared/credits.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import { packageUse, type PackageUse } from "../../subscriptions/package-use.ts";
import { packages } from "../../subscriptions/packages.ts";
import type { SubscriptionWish } from "../../subscriptions/subscriptions.ts";
import type { Database } from "../../db/database.ts";
import type { Handlers } from "../api-routes.ts";
import type { packageContract } from "../contract/package.ts";

export interface PackageRouteDeps {
  readonly accounts: Accounts;
  readonly database: Database;
  readonly clock: Clock;
}

export function packageHandlers({ accounts, database, clock }: PackageRouteDeps): Handlers<typeof packageContract> {
  return {
    async showPackage({ session }) {
      const use = await packageUse(database, session.user.accountId, clock.now());
      const { subscription, choices } = use;
      return {
        subscription,
        quota: viewQuota(use),
        packages: Object.values(packages).map(({ creditsPerMonth, ...facts }) => ({
          ...facts,
          creditsPerMonth: formatCredits(millicredits(creditsPerMonth * 1000n)),
          actions: choices.to[facts.name],
        })),
        actions: choices.alone,
      };
    },
    quotePackage: ({ session, body }) => accounts.subscriptions.preview(session.user.accountId, wishOf(body)),
    changePackage: ({ session, body, origin }) =>
      accounts.as(origin).subscriptions.change(session.user.accountId, wishOf(body), body.quoteId),
    async listInvoiceLines({ session }) {
      const items = await accounts.subscriptions.invoice(session.user.accountId);
      const totalCents = items.reduce((sum, { amountCents }) => sum + amountCents, 0);
      return { items, total: items.length, totalCents };
    },
  };
}

function wishOf({ action, package: name }: SubscriptionWish): SubscriptionWish {
  return { action, ...(name === undefined ? {} : { package: name }) };
}

function viewQuota({ quota, used, isExhausted }: PackageUse) {
  if (quota === null) return null;
  const left = millicredits(quota > used ? quota - used : 0n);
  return {
    credits: formatCredits(quota),
    used: formatCredits(used),
    left: formatCredits(left),
    exhausted: isExhausted,
  };
}
