/** `weiche subscription …`: packages as operators order, change and look at them. */
import { Option, type Command } from "commander";
import { subscriptionActions, type SubscriptionAction } from "../../subscriptions/subscription-rules.ts";
import type { Actions } from "./actions.ts";
import { agree, euros } from "./charge.ts";

const effects: Readonly<Record<SubscriptionAction["kind"], string>> = {
  trial: "the free trial, once per account; its package goes on after it unless cancelled",
  order: "a package for an account without one; its billing period begins now",
  upgrade: "a larger package at once; the difference is charged for the days that are left",
  downgrade: "a smaller package from the end of the billing period on",
  cancel: "no package from the end of the billing period on",
  withdraw: "take a pending downgrade or cancellation back",
};
const withPackage: readonly SubscriptionAction["kind"][] = ["order", "upgrade", "downgrade"];
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
    const command = subscription.command(action).description(effects[action]).requiredOption("--account <account>");
    if (withPackage.includes(action)) command.requiredOption("--package <package>", "its name, in any case");
    command
      .option("--quote <id>", "charge what `preview` said, or refuse if the price has changed; nothing is asked then")
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
    .description("what a change costs now, and the quote to order it by")
    .requiredOption("--account <account>")
    .addOption(new Option("--action <action>").choices(subscriptionActions).makeOptionMandatory())
    .option("--package <package>")
    .action(async ({ account, ...body }: Wish & { action: string }) => {
      const { accountId: _account, ...quote } = await ask("quotePackage", { query: { account }, body });
      printItem(quote);
    });
  subscription
    .command("show")
    .description("package, billing period and what is pending")
    .requiredOption("--account <account>")
    .action(async ({ account }: Wish) => printItem((await ask("showPackage", { query: { account } })).subscription));
  subscription
    .command("invoice")
    .description("what was charged, net, in cents")
    .requiredOption("--account <account>")
    .action(async ({ account }: Wish) => {
      printList((await ask("listInvoiceLines", { query: { account } })).items, lineColumns);
    });
}

/** The quote that is charged: one that costs nothing, or that the operator has agreed to. */
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
