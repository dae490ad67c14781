/** `weiche key …`: API keys. */
import { CommanderError, InvalidArgumentError, Option, type Command } from "commander";
import { itemText, query, type Item } from "./cli-text.ts";
import type { Actions } from "./cli.ts";
import { changes, restrictable, restrictions, type RestrictionOptions } from "./restriction-options.ts";

const columns = [
  "id",
  "name",
  "state",
  "reason",
  "lastFour",
  "creditsUsed",
  "creditLimit",
  "lastUsedAt",
  "expiresAt",
  "allowedModels",
];

export function addKeyCommands(key: Command, { act, ask, list, print }: Actions): void {
  const expiry = new Option("--expires <instant>", "such as 2027-01-31T18:00:00+01:00").argParser(instant);
  type KeyOptions = RestrictionOptions & { name?: string; expires?: string | false };
  const settings = ({ name, expires, ...wish }: KeyOptions) => ({
    ...(name === undefined ? {} : { name }),
    ...(expires === undefined ? {} : { expiresAt: expires === false ? null : expires }),
    ...restrictions(wish),
  });
  restrictable(key.command("create"))
    .description("a new key; its value is shown only now")
    .requiredOption("--user <id>")
    .requiredOption("--name <name>")
    .addOption(expiry)
    .action(({ user, ...wish }: KeyOptions & { user: string }) =>
      act("POST", "/keys", { userId: user, ...settings(wish) }),
    );
  key
    .command("list")
    .description("the keys of a user or of a whole account: why one is not usable, what it used in this billing period")
    .option("--user <id>")
    .addOption(new Option("--account <id>").conflicts("user"))
    .action(({ user, account }: { user?: string; account?: string }) => {
      if (user === undefined && account === undefined)
        throw new CommanderError(2, "weiche.whose", "say whose: --user or --account (see --help)");
      return list(
        `/keys?${query({ user, account })}`,
        user === undefined ? columns.toSpliced(2, 0, "userEmail") : columns,
      );
    });
  key
    .command("show <id>")
    .description("all of that of one key, and the limit that stops it first")
    .action(async (id: string) => {
      const shown = await ask<Item>("GET", `/keys/${encodeURIComponent(id)}`);
      print(shown, itemText(shown));
    });
  restrictable(key.command("update <id>"))
    .description("name, models, credits or expiry of a key")
    .option("--name <name>")
    .addOption(expiry)
    .option("--no-expires", "no expiry")
    .action((id: string, wish: KeyOptions) => act("PATCH", `/keys/${encodeURIComponent(id)}`, changes(settings(wish))));
  for (const [action, effect] of [
    ["regenerate", "a new key with the same settings, shown only now; the old one stops at once"],
    ["revoke", "stop a key for good"],
  ] as const) {
    key
      .command(`${action} <id>`)
      .description(effect)
      .action((id: string) => act("POST", `/keys/${encodeURIComponent(id)}/${action}`));
  }
}

function instant(text: string): string {
  try {
    return Temporal.Instant.from(text).toString();
  } catch {
    throw new InvalidArgumentError("An instant looks like 2027-01-31T18:00:00+01:00.");
  }
}
