/** `weiche subscription …`: orders, changes and shows an account's package. */
import { Option, type Command } from "commander";
import { subscriptionActions, type SubscriptionAction } from "../../subscriptions/subscription-rules.ts";
import type { Actions } from "./actions.ts";
import { accountHelp } from "./cli-text.ts";
import { agree, euros } from "./charge.ts";

const effects: Readonly<Record<SubscriptionAction["kind"], string>> = {
  trial: "Start an account's free trial. Unless cancelled, its package is charged when the trial ends.",
  order: "Order a package for an account without one. Its billing period begins now.",
  upgrade: "Upgrade to a larger package at once and charge the difference for the remaining days.",
  downgrade: "Change to a smaller package at the end of the billing period.",
  cancel: "Cancel the package at the end of the billing period.",
  withdraw: "Withdraw a pending downgrade or cancellation.",
};
const withPackage: readonly SubscriptionAction["kind"][] = ["order", "upgrade", "downgrade"];
const packageHelp = "the package's name, case-insensitive";
const lineColumns = ["periodStart", "periodEnd", "reason", "package", "days", "periodDays", "amountCents"];

interface Wish {
  readonly account: string;
  readonly package?: string;
  readonly quote?: string;
  readonly yes?: boolean;
}

export function addSubscriptionCommands(subscription: Command, actions: Actions): void {
  const { ask, printItem, printList } = actions;
  for (const action of subscriptionActions) {
    const command = subscription.command(action).description(effects[action]);
    command.requiredOption("--account <account>", accountHelp);
    if (withPackage.includes(action)) command.requiredOption("--package <package>", packageHelp);
    command
      .option("--quote <id>", "charge exactly the quote of `preview` without asking; refuse if the price has changed")
      .option("--yes", "charge without asking")
      .action(async ({ account, package: name, quote, yes }: Wish) => {
        const wish = { action, package: name };
        const quoteId = quote ?? (await agreedQuote({ account, wish, yes }, actions));
        const body = { ...wish, quoteId };
        const { accountId: _account, ...changed } = await ask("changePackage", { query: { account }, body });
        printItem(changed);
      });
  }
  subscription
    .command("preview")
    .description("Show the price of a change and get a quote for it. Changes nothing.")
    .requiredOption("--account <account>", accountHelp)
    .addOption(new Option("--action <action>", "the change").choices(subscriptionActions).makeOptionMandatory())
    .option("--package <package>", packageHelp)
    .action(async ({ account, ...body }: Wish & { action: string }) => {
      const { accountId: _account, ...quote } = await ask("quotePackage", { query: { account }, body });
      printItem(quote);
    });
  subscription
    .command("show")
    .description("Show an account's package, billing period and pending change.")
    .requiredOption("--account <account>", accountHelp)
    .action(async ({ account }: Wish) => printItem((await ask("showPackage", { query: { account } })).subscription));
  subscription
    .command("invoice")
    .description("List an account's invoice lines, net, in cents.")
    .requiredOption("--account <account>", accountHelp)
    .action(async ({ account }: Wish) => {
      printList((await ask("listInvoiceLines", { query: { account } })).items, lineColumns);
    });
}

/** Returns a quote that costs nothing or that the operator has agreed to. */
async function agreedQuote(
  { account, wish, yes }: { readonly account: string; readonly wish: object; readonly yes?: boolean },
  { ask, terminal }: Actions,
): Promise<string> {
  const quote = await ask("quotePackage", { query: { account }, body: wish });
  if (quote.dueCents > 0 && !yes) {
    const months = quote.thenCents === null ? "" : `, then ${euros(quote.thenCents)} a month`;
    await agree(`${euros(quote.dueCents)} net are charged to ${account} now${months}`, terminal);
  }
  return quote.quoteId;
}
