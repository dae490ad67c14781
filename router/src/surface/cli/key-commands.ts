/** `weiche key …`: API keys. */
import { CommanderError, InvalidArgumentError, Option, type Command } from "commander";
import type { Actions } from "./actions.ts";
import { accountHelp, userHelp } from "./cli-text.ts";
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

export function addKeyCommands(key: Command, { ask, printItem, printList }: Actions): void {
  const expiry = new Option("--expires <instant>", "when the key expires, such as 2027-01-31T18:00:00+01:00").argParser(
    instant,
  );
  type KeyOptions = RestrictionOptions & { name?: string; expires?: string | false };
  const settings = ({ name, expires, ...wish }: KeyOptions) => ({
    ...(name !== undefined && { name }),
    ...(expires !== undefined && { expiresAt: expires === false ? null : expires }),
    ...restrictions(wish),
  });
  restrictable(key.command("create"))
    .description("Create a key and print it. It cannot be shown again.")
    .requiredOption("--user <user>", userHelp)
    .requiredOption("--name <name>", "the key's name")
    .addOption(expiry)
    .action(async ({ user, ...wish }: KeyOptions & { user: string }) => {
      printItem(shownOnce(await ask("createKey", { body: { userId: user, ...settings(wish) } })));
    });
  key
    .command("list")
    .description("List the keys of a user or account: state, reason and use in this billing period.")
    .option("--user <user>", userHelp)
    .addOption(new Option("--account <account>", accountHelp).conflicts("user"))
    .action(async ({ user, account }: { user?: string; account?: string }) => {
      if (user === undefined && account === undefined)
        throw new CommanderError(2, "weiche.whose", "--user or --account is missing (see --help)");
      const { items, accountId } = await ask("listKeys", { query: { userId: user, account, sort: "created" } });
      printList(
        items.map((item) => ({ ...item, accountId })),
        user === undefined ? columns.toSpliced(2, 0, "userEmail") : columns,
      );
    });
  named("show <key>")
    .description("Show one key and the limit it will reach first.")
    .action(async (id: string, { account, user }: Whose) =>
      printItem(await ask("showKey", { id, query: { account, user } })),
    );
  restrictable(named("update <key>"))
    .description("Change a key's name, models, credit limit or expiry.")
    .option("--name <name>", "the new name")
    .addOption(expiry)
    .option("--no-expires", "the key never expires")
    .action(async (id: string, { account, user, ...wish }: KeyOptions & Whose) => {
      printItem(await ask("updateKey", { id, query: { account, user }, body: changes(settings(wish)) }));
    });
  named("regenerate <key>")
    .description("Replace a key with a new one of the same settings and print it. The old key stops at once.")
    .action(async (id: string, { account, user }: Whose) =>
      printItem(shownOnce(await ask("regenerateKey", { id, query: { account, user } }))),
    );
  named("revoke <key>")
    .description("Revoke a key permanently.")
    .action(async (id: string, { account, user }: Whose) =>
      printItem(await ask("revokeKey", { id, query: { account, user } })),
    );

  /** A command for one key. */
  function named(usage: string): Command {
    return key
      .command(usage)
      .option("--account <account>", "search only this account's keys, if several have the name")
      .option("--user <user>", "search only this user's keys, if several have the name");
  }
}

interface Whose {
  readonly account?: string;
  readonly user?: string;
}

function shownOnce({ key, value, accountId }: { key: object; value: string; accountId: string }) {
  return { ...key, accountId, key: value };
}

function instant(text: string): string {
  try {
    return Temporal.Instant.from(text).toString();
  } catch {
    throw new InvalidArgumentError("An instant looks like 2027-01-31T18:00:00+01:00.");
  }
}
