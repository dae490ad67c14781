/** `weiche subscription …`: packages as operators order, change and look at them. */
import { Option, type Command } from "commander";
import { subscriptionActions, type SubscriptionAction } from "../../subscriptions/subscription-rules.ts";
import { itemText, type Item } from "./cli-text.ts";
import type { Actions } from "./cli.ts";

const effects: Readonly<Record<SubscriptionAction["kind"], string>> = {
  trial: "30 days of Starter, once per account; Starter goes on after it unless cancelled",
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
}

export function addSubscriptionCommands(subscription: Command, { act, ask, list, print }: Actions): void {
  for (const action of subscriptionActions) {
    const command = subscription.command(action).description(effects[action]).requiredOption("--account <id>");
    if (withPackage.includes(action))
      command.requiredOption("--package <package>", "Starter, Pro, Business or Business Plus");
    command
      .option("--quote <id>", "charge what `preview` said, or refuse if the price has changed")
      .action(({ account, package: name, quote }: Wish) =>
        act("POST", pathOf(account), { action, package: name, quoteId: quote }),
      );
  }
  subscription
    .command("preview")
    .description("what a change costs now, and the quote to order it by")
    .requiredOption("--account <id>")
    .addOption(new Option("--action <action>").choices(subscriptionActions).makeOptionMandatory())
    .option("--package <package>")
    .action(({ account, action, package: name }: Wish & { action: string }) =>
      act("POST", `${pathOf(account)}/preview`, { action, package: name }),
    );
  subscription
    .command("show")
    .description("package, billing period and what is pending")
    .requiredOption("--account <id>")
    .action(async ({ account }: Wish) => {
      const shown = await ask<Item>("GET", pathOf(account));
      print(shown, itemText(shown));
    });
  subscription
    .command("invoice")
    .description("what was charged, net, in cents")
    .requiredOption("--account <id>")
    .action(({ account }: Wish) => list(`/accounts/${encodeURIComponent(account)}/invoice`, lineColumns));
}

function pathOf(account: string): string {
  return `/accounts/${encodeURIComponent(account)}/subscription`;
}
