/** `weiche user …`: the people of an account, and how they sign in. */
import { Option, type Command } from "commander";
import type { Actions } from "./actions.ts";
import type { Answer } from "./client.ts";
import { changes, restrictable, restrictions, type RestrictionOptions } from "./restriction-options.ts";

const columns = ["id", "email", "role", "state", "reason", "keys", "creditsUsed", "creditLimit", "lastLoginAt"];
const roles = ["owner", "admin", "member"];

export function addUserCommands(user: Command, { ask, printItem, printList }: Actions): void {
  restrictable(user.command("create"))
    .description("a new user; prints the link by which they set a password, mailed too, if `smtp` is set up")
    .requiredOption("--account <account>")
    .requiredOption("--email <email>")
    .addOption(new Option("--role <role>").choices(roles).makeOptionMandatory())
    .action(
      async ({ account, email, role, ...wish }: RestrictionOptions & Record<"account" | "email" | "role", string>) => {
        const body = { email, role, ...restrictions(wish) };
        const { user: created, accountId, ...link } = await ask("createUser", { query: { account }, body });
        printItem({ ...viewPerson(created, accountId), ...link });
      },
    );
  user
    .command("list")
    .description("the people of an account: how they stand and what they used in this billing period")
    .requiredOption("--account <account>")
    .action(async (query: { account: string }) => {
      const { items, accountId } = await ask("listUsers", { query: { ...query, sort: "created" } });
      printList(
        items.map((item) => ({ ...item, accountId })),
        columns,
      );
    });
  user
    .command("show <user>")
    .description("all of that of one user")
    .action(async (id: string) => printItem(await ask("showUser", { id })));
  restrictable(user.command("update <user>"))
    .description("role, models and credits of a user and all their keys; a new role ends their sessions")
    .addOption(new Option("--role <role>").choices(roles))
    .action(async (id: string, { role, ...wish }: RestrictionOptions & { role?: string }) => {
      const body = changes({ ...(role && { role }), ...restrictions(wish) });
      printItem(viewPerson(await ask("updateUser", { id, body })));
    });
  user
    .command("block <user>")
    .description("stop all keys of a user at once")
    .action(async (id: string) => printItem(viewPerson(await ask("blockUser", { id }))));
  user
    .command("unblock <user>")
    .description("let them work again")
    .action(async (id: string) => printItem(viewPerson(await ask("unblockUser", { id }))));
  user
    .command("delete <user>")
    .description("for good: their keys are revoked, their address is free again")
    .action(async (named: string) => {
      const user = await ask("showUser", { id: named });
      const { id, accountId, email, role, allowedModels, creditLimit, createdAt } = user;
      await ask("deleteUser", { id });
      printItem({ id, accountId, email, role, blocked: true, allowedModels, creditLimit, createdAt });
    });
  addSignInCommands(user, { ask, printItem, printList });
}

/** Commands about signing in: invitations, links, sessions, second factors. */
function addSignInCommands(
  user: Command,
  { ask, printItem, printList }: Pick<Actions, "ask" | "printItem" | "printList">,
): void {
  for (const [command, route, effect] of [
    [
      "invite",
      "renewInvitation",
      "a new link for who has not joined yet; the one before is over. Mailed too, if `smtp` is set up",
    ],
    ["withdraw", "withdrawInvitation", "the invitation of who has not joined leads nowhere any more"],
    [
      "reset-password",
      "makeResetLink",
      "a link for a new password, once, for an hour; mailed, or printed where no mail goes out",
    ],
    ["logout", "signOutUser", "end all sessions of a user at once"],
    ["totp-off", "turnUserTotpOff", "take the second factor of a user off, who has lost it and all recovery codes"],
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
    .description("who was invited to an account, and what came of it")
    .requiredOption("--account <account>")
    .action(async (query: { account: string }) => {
      printList((await ask("invitations", { query })).items, ["userId", "email", "role", "state", "expiresAt"]);
    });
}

/** The id of the user that is named by it, its beginning, or their e-mail address. */
async function idOf(ask: Actions["ask"], named: string): Promise<string> {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(named) ? named : (await ask("showUser", { id: named })).id;
}

/** `blocked` beside the state, as scripts know it. */
export function viewPerson<User extends { readonly state: Answer<"showUser">["state"] }>(
  user: User,
  accountId?: string,
) {
  return { ...user, ...(accountId && { accountId }), blocked: user.state === "blocked" };
}
