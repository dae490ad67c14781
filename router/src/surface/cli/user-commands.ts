/** `weiche user …`: manages the people of an account and how they sign in. */
import { Option, type Command } from "commander";
import type { Actions } from "./actions.ts";
import { accountHelp } from "./cli-text.ts";
import type { Answer } from "./client.ts";
import { changes, restrictable, restrictions, type RestrictionOptions } from "./restriction-options.ts";

const columns = ["id", "email", "role", "state", "reason", "keys", "creditsUsed", "creditLimit", "lastLoginAt"];
const roles = ["owner", "admin", "member"];

export function addUserCommands(user: Command, { ask, printItem, printList }: Actions): void {
  restrictable(user.command("create"))
    .description("Create a user and print their invitation link (also mailed if `smtp` is configured).")
    .requiredOption("--account <account>", accountHelp)
    .requiredOption("--email <email>", "the user's e-mail address")
    .addOption(new Option("--role <role>", "the user's role").choices(roles).makeOptionMandatory())
    .action(
      async ({ account, email, role, ...wish }: RestrictionOptions & Record<"account" | "email" | "role", string>) => {
        const body = { email, role, ...restrictions(wish) };
        const { user: created, accountId, ...link } = await ask("createUser", { query: { account }, body });
        printItem({ ...viewPerson(created, accountId), ...link });
      },
    );
  user
    .command("list")
    .description("List the people of an account: role, state, and credits used in this billing period.")
    .requiredOption("--account <account>", accountHelp)
    .action(async (query: { account: string }) => {
      const { items, accountId } = await ask("listUsers", { query: { ...query, sort: "created" } });
      printList(
        items.map((item) => ({ ...item, accountId })),
        columns,
      );
    });
  user
    .command("show <user>")
    .description("Show one user: role, state, limits, keys and credits used.")
    .action(async (id: string) => printItem(await ask("showUser", { id })));
  restrictable(user.command("update <user>"))
    .description("Change a user's role, models or credit limit. A new role ends their sessions.")
    .addOption(new Option("--role <role>", "the new role").choices(roles))
    .action(async (id: string, { role, ...wish }: RestrictionOptions & { role?: string }) => {
      const body = changes({ ...(role && { role }), ...restrictions(wish) });
      printItem(viewPerson(await ask("updateUser", { id, body })));
    });
  user
    .command("block <user>")
    .description("Block a user: stop their keys and sessions at once.")
    .action(async (id: string) => printItem(viewPerson(await ask("blockUser", { id }))));
  user
    .command("unblock <user>")
    .description("Unblock a user.")
    .action(async (id: string) => printItem(viewPerson(await ask("unblockUser", { id }))));
  user
    .command("delete <user>")
    .description("Delete a user permanently. Revokes their keys and frees their e-mail address.")
    .action(async (named: string) => {
      const user = await ask("showUser", { id: named });
      const { id, accountId, email, role, allowedModels, creditLimit, createdAt } = user;
      await ask("deleteUser", { id });
      printItem({ id, accountId, email, role, blocked: true, allowedModels, creditLimit, createdAt });
    });
  addSignInCommands(user, { ask, printItem, printList });
}

/** Adds the commands for invitations, password links, sessions and second factors. */
function addSignInCommands(
  user: Command,
  { ask, printItem, printList }: Pick<Actions, "ask" | "printItem" | "printList">,
): void {
  for (const [command, route, effect] of [
    [
      "invite",
      "renewInvitation",
      "Print a new invitation link for a user who has not joined (also mailed if `smtp` is configured).",
    ],
    ["withdraw", "withdrawInvitation", "Revoke a pending invitation."],
    [
      "reset-password",
      "makeResetLink",
      "Mail a user a link to set a new password, valid once for an hour. Without mail, print it.",
    ],
    ["logout", "signOutUser", "End all sessions of a user at once."],
    ["totp-off", "turnUserTotpOff", "Turn off the second factor of a user who has lost it."],
  ] as const)
    user
      .command(`${command} <user>`)
      .description(effect)
      .action(async (named: string) => {
        const id = await idOf(ask, named);
        printItem({ id, ...((await ask(route, { id })) as object | undefined) });
      });
  user
    .command("invitations")
    .description("List an account's invitations and their states.")
    .requiredOption("--account <account>", accountHelp)
    .action(async (query: { account: string }) => {
      printList((await ask("invitations", { query })).items, ["userId", "email", "role", "state", "expiresAt"]);
    });
}

/** Finds a user's id by its beginning or their e-mail address. Returns a whole id unchanged. */
async function idOf(ask: Actions["ask"], named: string): Promise<string> {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(named) ? named : (await ask("showUser", { id: named })).id;
}

/** Adds `blocked`, which scripts read, to the state. */
export function viewPerson<User extends { readonly state: Answer<"showUser">["state"] }>(
  user: User,
  accountId?: string,
) {
  return { ...user, ...(accountId && { accountId }), blocked: user.state === "blocked" };
}
