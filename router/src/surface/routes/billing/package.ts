/** Handlers of an account's package. */
import { formatCredits, millicredits } from "@weiche/shared/credits.ts";
import type { PackageTerms } from "@weiche/shared/packages.ts";
import { instantText } from "../../../db/database.ts";
import { packageChoices } from "../../../subscriptions/subscription-rules.ts";
import { packageUse, type PackageUse } from "../../../subscriptions/package-use.ts";
import { offeredTo, termsAt, viewTerms, type Package } from "../../../subscriptions/packages.ts";
import type { Handlers } from "../../server/add-routes.ts";
import type { packageContract } from "../../contract/package.ts";
import type { HandlerDeps } from "../handler-deps.ts";

export function packageHandlers({ accounts, database, clock }: HandlerDeps): Handlers<typeof packageContract> {
  return {
    async showPackage({ accountId }) {
      const use = await packageUse(database, accountId, clock.now());
      const current = use.period?.term.package;
      const offered = offeredTo(use.book, accountId);
      const shown = [...use.book.values()].filter((one) => offered.includes(one) || one.name === current);
      const choices = packageChoices(
        use.terms,
        use.nowMs,
        use.book,
        offered.map(({ name }) => name),
      );
      return {
        subscription: use.subscription,
        quota: viewQuota(use),
        packages: shown.map((one) => ({
          name: one.name,
          ...viewOffer(one, one.name === current ? use.booked! : termsAt(use.book, one.name, use.nowMs)),
          coming: one.versions
            .filter(({ effectiveFromMs }) => effectiveFromMs > use.nowMs)
            .map((terms) => ({ at: instantText(terms.effectiveFromMs), ...viewOffer(one, terms) })),
          actions: choices.to.get(one.name) ?? [],
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

function viewOffer({ hasTrial }: Package, terms: PackageTerms) {
  return { ...viewTerms(terms), trialDays: hasTrial ? terms.trialDays : null };
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
