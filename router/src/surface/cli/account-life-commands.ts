/** `weiche account rename|block|unblock|delete`. The account is named by its id, the beginning of it, or its name. */
import type { Command } from "commander";
import type { Actions } from "./actions.ts";
import { euros } from "./charge.ts";
import { Failed, type Answer } from "./client.ts";
import { canAsk, confirmed } from "./terminal.ts";

type Deletion = Answer<"previewAccountDeletion">;

export function addAccountLife(account: Command, actions: Actions): void {
  const { ask, printItem } = actions;
  account
    .command("rename <account> <name>")
    .description("another name, in the portal and in invitations")
    .action(async (id: string, name: string) => printItem(await ask("renameAccount", { id, body: { name } })));
  account
    .command("block <account>")
    .description("stop all keys of an account at once and end its sessions; its package and what it costs go on")
    .action(async (id: string) => printItem(await ask("blockAccount", { id })));
  account
    .command("unblock <account>")
    .description("let its keys and people work again; people sign in anew")
    .action(async (id: string) => printItem(await ask("unblockAccount", { id })));
  account
    .command("delete <account>")
    .description("for good: names, addresses and sign-ins go, keys and package end; invoice lines and usage stay")
    .option("--yes", "do it without asking")
    .action((named: string, { yes }: { yes?: true }) => deleteAccount(actions, named, yes ?? false));
}

async function deleteAccount({ ask, print, terminal }: Actions, named: string, yes: boolean): Promise<void> {
  const planned = await ask("previewAccountDeletion", { id: named });
  const { id, name } = planned;
  if (!yes) {
    terminal.errors.write(`${name} (${id})\n${deletionText(planned, "would")}\n`);
    if (!canAsk(terminal)) throw new Failed("nothing is deleted: say --yes to delete it for good");
    if (!(await confirmed(terminal, `Delete ${name} for good?`))) throw new Failed("nothing is deleted");
  }
  const deleted = await ask("deleteAccount", { id });
  print(deleted, () => `${id} is deleted.\n${deletionText(deleted, "did")}`);
}

function deletionText({ goes, stays }: Deletion, when: "would" | "did"): string {
  const [go, stay] = when === "would" ? ["would go", "would stay"] : ["gone", "stays"];
  return [
    `${go}: ${goes.users} users with their addresses and sign-ins, ${goes.sessions} sessions, ${goes.invitations} invitations,` +
      ` ${goes.notices} notices, the names of account and keys; ${goes.keys} keys and the package end`,
    `${stay}: ${stays.invoiceLines} invoice lines of ${euros(stays.invoicedCents)} net, usage of ${stays.requests} requests in totals and days,` +
      ` ${stays.auditEntries} entries of the audit log`,
  ].join("\n");
}
