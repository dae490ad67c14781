/** `weiche user invite|withdraw|reset-password|logout|totp-off|invitations`: for people who cannot sign in, or should not any more. */
import type { Command } from "commander";
import type { Actions } from "./cli.ts";

const effects = {
  invite: "a new link for who has not joined yet; the one before is over. Mailed too, if `smtp` is set up",
  withdraw: "the invitation of who has not joined leads nowhere any more",
  "reset-password": "a link for a new password, once, for an hour; mailed, or printed where no mail goes out",
  logout: "end all sessions of a user at once",
  "totp-off": "take the second factor of a user off, who has lost it and all recovery codes",
} as const;

export function addIdentityCommands(user: Command, { act, list }: Pick<Actions, "act" | "list">): void {
  for (const [name, effect] of Object.entries(effects)) {
    user
      .command(`${name} <id>`)
      .description(effect)
      .action((id: string) => act("POST", `/users/${encodeURIComponent(id)}/${name}`));
  }
  user
    .command("invitations")
    .description("who was invited to an account, and what came of it")
    .requiredOption("--account <id>")
    .action(({ account }: { account: string }) =>
      list(`/invitations?${new URLSearchParams({ account }).toString()}`, [
        "userId",
        "email",
        "role",
        "state",
        "expiresAt",
      ]),
    );
}
