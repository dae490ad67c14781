/** `weiche account …`, and what an account is told: `weiche notices` and `weiche refusals`. */
import type { Command } from "commander";
import { itemText, listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import { agree, euros } from "./charge.ts";
import { addAccountLife } from "./account-life-commands.ts";
import { viewPerson } from "./user-commands.ts";

interface NewAccount {
  readonly name: string;
  readonly ownerEmail: string;
  readonly package?: string;
  readonly yes?: boolean;
}

export function addAccountCommands(program: Command, actions: Actions): void {
  const { ask, print, printItem, printList } = actions;
  const account = program.command("account").description("customer accounts");
  account
    .command("create")
    .description("a new account; prints the link by which its Owner sets a password, mailed too, if `smtp` is set up")
    .requiredOption("--name <name>")
    .requiredOption("--owner-email <email>")
    .option("--package <package>", "its name, in any case; its billing period begins now")
    .option("--yes", "charge the package without asking")
    .action(async ({ yes, ...wish }: NewAccount) => {
      const dueCents = wish.package === undefined || yes ? undefined : await agreedCents(wish.package, actions);
      printItem(await ask("createAccount", { body: { ...wish, dueCents } }));
    });
  account
    .command("list")
    .description("all accounts")
    .option("--deleted", "the deleted ones instead")
    .action(async ({ deleted }: { deleted?: true }) => {
      const accounts = await ask("listAccounts", { query: { deleted: deleted && "true" } });
      const when = deleted ? "deletedAt" : "blockedAt";
      printList(accounts, ["id", "name", "package", "state", "periodEnd", "ownerUserId", when]);
    });
  account
    .command("show <account>")
    .description("an account with its users")
    .action(async (named: string) => {
      const shown = await ask("showAccount", { id: named });
      const { id } = shown;
      const { items, accountId } = await ask("listUsers", { query: { account: id, sort: "created" } });
      const users = items.map((user) => viewPerson(user, accountId));
      const columns = ["id", "email", "role", "blocked", "allowedModels", "creditLimit"];
      print({ ...shown, users }, (width) => `${itemText(shown)}\n\n${listText(users, columns, width)}`);
    });
  addAccountLife(account, actions);
  program
    .command("notices")
    .description("what the people of an account are told in the portal, youngest first")
    .requiredOption("--account <account>")
    .option("--limit <notices>", "", "50")
    .action(async (query: { account: string; limit: string }) => {
      const { items } = await ask("listNotices", { query });
      const told = items.map(({ user, key, ...notice }) => ({ ...notice, user: user?.email, key: key?.name }));
      print(items, (width) => listText(told, ["at", "kind", "user", "key", "facts"], width));
    });
  program
    .command("refusals")
    .description("refused requests of an account in the last 24 hours, and what helps")
    .requiredOption("--account <account>")
    .action(async (query: { account: string }) => {
      const { accountId: _account, ...report } = await ask("showRefusals", { query });
      const table = (width?: number) => listText(report.codes, ["code", "status", "count", "advice"], width);
      print(report, (width) => `${report.total} since ${report.since}\n\n${table(width)}`);
    });
}

/** The price of the package for a new account, once the operator has agreed to it. */
async function agreedCents(packageName: string, { ask, terminal }: Actions): Promise<number> {
  const quote = await ask("quoteAccount", { body: { package: packageName } });
  const months = quote.thenCents === null ? "" : `, then ${euros(quote.thenCents)} a month`;
  if (quote.dueCents > 0)
    await agree(
      `${euros(quote.dueCents)} net are charged to the new account for ${quote.package} now${months}`,
      terminal,
    );
  return quote.dueCents;
}
