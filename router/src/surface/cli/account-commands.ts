/** `weiche account …`, `weiche notices` and `weiche refusals`. */
import type { Command } from "commander";
import { accountHelp, itemText, listText } from "./cli-text.ts";
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
  const account = program.command("account").description("Manage customer accounts.");
  account
    .command("create")
    .description("Create an account and print its Owner's invitation link (also mailed if `smtp` is configured).")
    .requiredOption("--name <name>", "the account's name")
    .requiredOption("--owner-email <email>", "the Owner's e-mail address")
    .option("--package <package>", "the package's name, case-insensitive; its billing period begins now")
    .option("--yes", "charge the package without asking")
    .action(async ({ yes, ...wish }: NewAccount) => {
      const dueCents = wish.package === undefined || yes ? undefined : await agreedCents(wish.package, actions);
      printItem(await ask("createAccount", { body: { ...wish, dueCents } }));
    });
  account
    .command("list")
    .description("List all accounts.")
    .option("--deleted", "list the deleted accounts instead")
    .action(async ({ deleted }: { deleted?: true }) => {
      const accounts = await ask("listAccounts", { query: { deleted: deleted && "true" } });
      const when = deleted ? "deletedAt" : "blockedAt";
      printList(accounts, ["id", "name", "package", "state", "periodEnd", "ownerUserId", when]);
    });
  account
    .command("show <account>")
    .description("Show an account and its users.")
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
    .description("List the notices that an account sees in the portal, newest first.")
    .requiredOption("--account <account>", accountHelp)
    .option("--limit <notices>", "maximum number of notices", "50")
    .action(async (query: { account: string; limit: string }) => {
      const { items } = await ask("listNotices", { query });
      const rows = items.map(({ user, key, ...notice }) => ({ ...notice, user: user?.email, key: key?.name }));
      print(items, (width) => listText(rows, ["at", "kind", "user", "key", "facts"], width));
    });
  program
    .command("refusals")
    .description("Count an account's refused requests of the last 24 hours by code, with advice.")
    .requiredOption("--account <account>", accountHelp)
    .action(async (query: { account: string }) => {
      const { accountId: _account, ...report } = await ask("showRefusals", { query });
      const table = (width?: number) => listText(report.codes, ["code", "status", "count", "advice"], width);
      print(report, (width) => `${report.total} refused since ${report.since}\n\n${table(width)}`);
    });
}

/** Returns the package's price for a new account after the operator has agreed to it. */
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
