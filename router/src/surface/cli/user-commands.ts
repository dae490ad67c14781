/** `weiche user …`: the people of an account. How they sign in: identity-commands.ts. */
import { Option, type Command } from "commander";
import { itemText, query, type Item } from "./cli-text.ts";
import type { Actions } from "./cli.ts";
import { changes, restrictable, restrictions, type RestrictionOptions } from "./restriction-options.ts";

const columns = ["id", "email", "role", "state", "reason", "keys", "creditsUsed", "creditLimit", "lastLoginAt"];

export function addUserCommands(user: Command, { act, ask, list, print }: Actions): void {
  restrictable(user.command("create"))
    .description("a new user; prints the link by which they set a password, mailed too, if `smtp` is set up")
    .requiredOption("--account <id>")
    .requiredOption("--email <email>")
    .addOption(new Option("--role <role>").choices(["owner", "admin", "member"]).makeOptionMandatory())
    .action(({ account, email, role, ...wish }: RestrictionOptions & Record<"account" | "email" | "role", string>) =>
      act("POST", "/users", { accountId: account, email, role, ...restrictions(wish) }),
    );
  user
    .command("list")
    .description("the people of an account: how they stand and what they used in this billing period")
    .requiredOption("--account <id>")
    .action(({ account }: { account: string }) => list(`/users?${query({ account })}`, columns));
  user
    .command("show <id>")
    .description("all of that of one user")
    .action(async (id: string) => {
      const shown = await ask<Item>("GET", `/users/${encodeURIComponent(id)}`);
      print(shown, itemText(shown));
    });
  restrictable(user.command("update <id>"))
    .description("role, models and credits of a user and all their keys; a new role ends their sessions")
    .addOption(new Option("--role <role>").choices(["owner", "admin", "member"]))
    .action((id: string, { role, ...wish }: RestrictionOptions & { role?: string }) =>
      act("PATCH", `/users/${encodeURIComponent(id)}`, changes({ ...(role && { role }), ...restrictions(wish) })),
    );
  for (const [action, effect] of [
    ["block", "stop all keys of a user at once"],
    ["unblock", "let them work again"],
    ["delete", "for good: their keys are revoked, their address is free again"],
  ] as const) {
    user
      .command(`${action} <id>`)
      .description(effect)
      .action((id: string) => act("POST", `/users/${encodeURIComponent(id)}/${action}`));
  }
}
