/** `weiche user invite|reset-password|logout|totp-off`: for people who cannot sign in, or should not any more. */
import type { Command } from "commander";
import type { Actions } from "./cli.ts";

const effects = {
  invite: "a new link for who has not joined yet; the one before is over. Mailed too, if `smtp` is set up",
  "reset-password": "a link for a new password, once, for an hour; mailed, or printed where no mail goes out",
  logout: "end all sessions of a user at once",
  "totp-off": "take the second factor of a user off, who has lost it and all recovery codes",
} as const;

export function addIdentityCommands(user: Command, { act }: Pick<Actions, "act">): void {
  for (const [name, effect] of Object.entries(effects)) {
    user
      .command(`${name} <id>`)
      .description(effect)
      .action((id: string) => act("POST", `/users/${encodeURIComponent(id)}/${name}`));
  }
}
