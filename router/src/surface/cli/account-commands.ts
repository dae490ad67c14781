/** `weiche account …`, and what an account is told: `weiche notices` and `weiche refusals`. */
import type { Command } from "commander";
import { itemText, listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import { viewPerson } from "./user-commands.ts";

export function addAccountCommands(program: Command, { ask, print, printItem, printList }: Actions): void {
  const account = program.command("account").description("customer accounts");
  account
    .command("create")
    .description("a new account; prints the link by which its Owner sets a password, mailed too, if `smtp` is set up")
    .requiredOption("--name <name>")
    .requiredOption("--owner-email <email>")
    .option("--package <package>", "Starter, Pro, Business or Business Plus; its billing period begins now")
    .action(async (body: object) => printItem(await ask("POST /accounts", { body })));
  account
    .command("list")
    .description("all accounts")
    .action(async () => {
      printList(await ask("GET /accounts"), ["id", "name", "package", "state", "periodEnd", "ownerUserId"]);
    });
  account
    .command("show <id>")
    .description("an account with its users")
    .action(async (id: string) => {
      const shown = await ask("GET /accounts/:id", { id });
      const { items, accountId } = await ask("GET /users", { query: { account: id, sort: "created" } });
      const users = items.map((user) => viewPerson(user, accountId));
      const columns = ["id", "email", "role", "blocked", "allowedModels", "creditLimit"];
      print({ ...shown, users }, (width) => `${itemText(shown)}\n\n${listText(users, columns, width)}`);
    });
  program
    .command("notices")
    .description("what the people of an account are told in the portal, youngest first")
    .requiredOption("--account <id>")
    .option("--limit <notices>", "", "50")
    .action(async (query: { account: string; limit: string }) => {
      const { items } = await ask("GET /notices", { query });
      const told = items.map(({ user, key, ...notice }) => ({ ...notice, user: user?.email, key: key?.name }));
      print(items, (width) => listText(told, ["at", "kind", "user", "key", "facts"], width));
    });
  program
    .command("refusals")
    .description("refused requests of an account in the last 24 hours, and what helps")
    .requiredOption("--account <id>")
    .action(async (query: { account: string }) => {
      const { accountId: _account, ...report } = await ask("GET /refusals", { query });
      const table = (width?: number) => listText(report.codes, ["code", "status", "count", "advice"], width);
      print(report, (width) => `${report.total} since ${report.since}\n\n${table(width)}`);
    });
}
