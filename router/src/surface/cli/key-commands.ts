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
    .requiredOption("--user <id>")
    .requiredOption("--name <name>")
    .addOption(expiry)
    .action(async ({ user, ...wish }: KeyOptions & { user: string }) => {
      printItem(shownOnce(await ask("POST /keys", { body: { userId: user, ...settings(wish) } })));
    });
  key
    .command("list")
    .description("the keys of a user or of a whole account: why one is not usable, what it used in this billing period")
    .option("--user <id>")
    .addOption(new Option("--account <account>").conflicts("user"))
    .action(async ({ user, account }: { user?: string; account?: string }) => {
      if (user === undefined && account === undefined)
        throw new CommanderError(2, "weiche.whose", "say whose: --user or --account (see --help)");
      const { items, accountId } = await ask("GET /keys", { query: { userId: user, account, sort: "created" } });
      printList(
        items.map((item) => ({ ...item, accountId })),
        user === undefined ? columns.toSpliced(2, 0, "userEmail") : columns,
      );
    });
  key
    .command("show <id>")
    .description("all of that of one key, and the limit that stops it first")
    .action(async (id: string) => printItem(await ask("GET /keys/:id", { id })));
  restrictable(key.command("update <id>"))
    .description("name, models, credits or expiry of a key")
    .option("--name <name>")
    .addOption(expiry)
    .option("--no-expires", "no expiry")
    .action(async (id: string, wish: KeyOptions) => {
      printItem(await ask("PATCH /keys/:id", { id, body: changes(settings(wish)) }));
    });
  key
    .command("regenerate <id>")
    .description("a new key with the same settings, shown only now; the old one stops at once")
    .action(async (id: string) => printItem(shownOnce(await ask("POST /keys/:id/regenerate", { id }))));
  key
    .command("revoke <id>")
    .description("stop a key for good")
    .action(async (id: string) => printItem(await ask("POST /keys/:id/revoke", { id })));
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
