/** `weiche account rename|block|unblock|delete`. */
import { counted } from "@weiche/shared/program/amounts.ts";
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
    .description("Rename an account.")
    .action(async (id: string, name: string) => printItem(await ask("renameAccount", { id, body: { name } })));
  account
    .command("block <account>")
    .description("Block an account's keys and people at once. Its package and charges continue.")
    .action(async (id: string) => printItem(await ask("blockAccount", { id })));
  account
    .command("unblock <account>")
    .description("Unblock an account. Its people must sign in again.")
    .action(async (id: string) => printItem(await ask("unblockAccount", { id })));
  account
    .command("delete <account>")
    .description("Delete an account permanently. Invoice lines, usage and the audit log are kept.")
    .option("--yes", "delete without asking")
    .action((named: string, { yes }: { yes?: true }) => deleteAccount(actions, named, yes ?? false));
}

async function deleteAccount({ ask, print, terminal }: Actions, named: string, yes: boolean): Promise<void> {
  const planned = await ask("previewAccountDeletion", { id: named });
  const { id, name } = planned;
  if (!yes) {
    terminal.errors.write(`${name} (${id})\n${deletionText(planned, "would")}\n`);
    if (!canAsk(terminal)) throw new Failed("nothing was deleted: add --yes to delete the account permanently");
    if (!(await confirmed(terminal, `Delete ${name} permanently?`))) throw new Failed("nothing was deleted");
  }
  const deleted = await ask("deleteAccount", { id });
  print(deleted, () => `${id} is deleted.\n${deletionText(deleted, "did")}`);
}

function deletionText({ goes, stays }: Deletion, when: "would" | "did"): string {
  const [go, stay] = when === "would" ? ["would be deleted", "would be kept"] : ["deleted", "kept"];
  return [
    `${go}: ${counted(goes.users, "user")} with addresses and sign-ins, ${counted(goes.sessions, "session")}, ${counted(goes.invitations, "invitation")},` +
      ` ${counted(goes.notices, "notice")}, the names of the account and its keys; ${counted(goes.keys, "key is", "keys are")} revoked, the package ends`,
    `${stay}: ${counted(stays.invoices, "invoice")} with name and address, ${counted(stays.invoiceLines, "invoice line")} of ${euros(stays.invoicedCents)} net` +
      ` (${euros(stays.withoutInvoiceCents)} without an invoice yet), usage totals of ${counted(stays.requests, "request")},` +
      ` ${counted(stays.auditEntries, "entry", "entries")} of the audit log`,
  ].join("\n");
}
