/** `weiche key …`: API keys. */
import { CommanderError, InvalidArgumentError, Option, type Command } from "commander";
import type { Actions } from "./actions.ts";
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
  const expiry = new Option("--expires <instant>", "such as 2027-01-31T18:00:00+01:00").argParser(instant);
  type KeyOptions = RestrictionOptions & { name?: string; expires?: string | false };
  const settings = ({ name, expires, ...wish }: KeyOptions) => ({
    ...(name !== undefined && { name }),
    ...(expires !== undefined && { expiresAt: expires === false ? null : expires }),
    ...restrictions(wish),
  });
  restrictable(key.command("create"))
    .description("a new key; its value is shown only now")
    .requiredOption("--user <user>")
    .requiredOption("--name <name>")
    .addOption(expiry)
    .action(async ({ user, ...wish }: KeyOptions & { user: string }) => {
      printItem(shownOnce(await ask("createKey", { body: { userId: user, ...settings(wish) } })));
    });
  key
    .command("list")
    .description("the keys of a user or of a whole account: why one is not usable, what it used in this billing period")
    .option("--user <user>")
    .addOption(new Option("--account <account>").conflicts("user"))
    .action(async ({ user, account }: { user?: string; account?: string }) => {
      if (user === undefined && account === undefined)
        throw new CommanderError(2, "weiche.whose", "say whose: --user or --account (see --help)");
      const { items, accountId } = await ask("listKeys", { query: { userId: user, account, sort: "created" } });
      printList(
        items.map((item) => ({ ...item, accountId })),
        user === undefined ? columns.toSpliced(2, 0, "userEmail") : columns,
      );
    });
  named("show <key>")
    .description("all of that of one key, and the limit that stops it first")
    .action(async (id: string, { account, user }: Whose) =>
      printItem(await ask("showKey", { id, query: { account, user } })),
    );
  restrictable(named("update <key>"))
    .description("name, models, credits or expiry of a key")
    .option("--name <name>")
    .addOption(expiry)
    .option("--no-expires", "no expiry")
    .action(async (id: string, { account, user, ...wish }: KeyOptions & Whose) => {
      printItem(await ask("updateKey", { id, query: { account, user }, body: changes(settings(wish)) }));
    });
  named("regenerate <key>")
    .description("a new key with the same settings, shown only now; the old one stops at once")
    .action(async (id: string, { account, user }: Whose) =>
      printItem(shownOnce(await ask("regenerateKey", { id, query: { account, user } }))),
    );
  named("revoke <key>")
    .description("stop a key for good")
    .action(async (id: string, { account, user }: Whose) =>
      printItem(await ask("revokeKey", { id, query: { account, user } })),
    );

  /** A command for one key. */
  function named(usage: string): Command {
    return key
      .command(usage)
      .option("--account <account>", "whose keys alone are meant, where several have the name")
      .option("--user <user>", "the same");
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
