/** `weiche`: the operators' command. Exit codes: 0 done; 1 refused or failed, the reason on stderr; 2 wrong usage; 3 no router there. */
import { join, resolve } from "node:path";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { NobodyThere, askSocket } from "@weiche/shared/admin-socket.ts";
import { parseFactor } from "@weiche/shared/credits.ts";
import { csvLine } from "../credits/csv.ts";
import { usageParts } from "../credits/usage-parts.ts";
import type { UsageReport } from "../credits/usage-report.ts";
import { itemText, listText, type Item } from "./cli-text.ts";
import { addBusinessCommands } from "./business-commands.ts";
import { addIdentityCommands } from "./identity-commands.ts";
import { addSubscriptionCommands } from "./subscription-commands.ts";
import { addNodeCommands } from "./node-commands.ts";
import { modelsText, nodesText } from "./node-tables.ts";
import type { ModelForOperators, NodeForOperators } from "./node-views.ts";

class Failed extends Error {}

type Method = "GET" | "POST" | "PATCH";

/** Runs one command. `defaultDataDir`: where a router started from this checkout keeps its data. Returns the exit code. */
export async function runCli(args: readonly string[], env: NodeJS.ProcessEnv, defaultDataDir: string): Promise<number> {
  const program = new Command("weiche")
    .description("Looks at and steers the router of this machine.")
    .option("--json", "print JSON instead of tables")
    .option("--data-dir <dir>", "the router's data directory", env["WEICHE_DATA_DIR"] ?? defaultDataDir)
    .option("--socket <path>", "the router's admin socket, if it is elsewhere")
    .exitOverride()
    .configureHelp({ showGlobalOptions: true });

  async function ask<Answer>(method: Method, path: string, body?: object): Promise<Answer> {
    const { dataDir, socket } = program.opts<{ dataDir: string; socket?: string }>();
    const answer = await askSocket(resolve(socket ?? join(dataDir, "router", "admin.sock")), method, path, body);
    if (answer.status >= 300) throw new Failed((answer.body as { error: string }).error);
    return answer.body as Answer;
  }
  function print(value: unknown, text: string): void {
    console.log(program.opts<{ json?: boolean }>().json ? JSON.stringify(value, null, 2) : text);
  }
  /** Asks and shows the one thing that comes back. */
  async function act(method: Method, path: string, body?: object): Promise<void> {
    const item = await ask<Item>(method, path, body ?? {});
    print(item, itemText(item));
  }
  async function list(path: string, columns: readonly string[]): Promise<void> {
    const items = await ask<Item[]>("GET", path);
    print(items, listText(items, columns));
  }

  const actions: Actions = { act, ask, list, print };
  addAccountCommands(program.command("account").description("customer accounts"), actions);
  const user = program.command("user").description("the people of an account");
  addUserCommands(user, { act });
  addIdentityCommands(user, actions);
  addKeyCommands(program.command("key").description("API keys"), { act, list });
  addSubscriptionCommands(program.command("subscription").description("the package of an account"), actions);
  addBusinessCommands(program, actions);
  program
    .command("usage")
    .description("what an account used: in its current billing period, or from one German day to another")
    .requiredOption("--account <id>")
    .option("--from <date>")
    .option("--to <date>", "included")
    .addOption(new Option("--by <part>").choices(usageParts))
    .option("--csv", "the rows, for a spreadsheet")
    .action(async ({ account, csv, ...wish }: UsageOptions) => {
      const report = await ask<UsageReport>("GET", `/usage?${query({ account, ...wish })}`);
      if (csv) process.stdout.write(usageCsv(report));
      else print(report, usageText(report));
    });
  program
    .command("nodes")
    .description("nodes, their slots and what is active")
    .action(async () => {
      const nodes = await ask<NodeForOperators[]>("GET", "/nodes");
      print(nodes, nodesText(nodes));
    });
  addNodeCommands(program, actions);
  program
    .command("models")
    .description("the catalogue, and who serves what")
    .action(async () => {
      const models = await ask<ModelForOperators[]>("GET", "/models");
      print(models, modelsText(models));
    });
  program
    .command("catalogue")
    .description("the model catalogue")
    .command("reload")
    .description("take over the changed file; a wrong one is refused and the old catalogue stays")
    .action(() => act("POST", "/catalogue/reload"));

  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return exitCodeOf(error);
  }
}

export interface Actions {
  readonly ask: <Answer>(method: Method, path: string, body?: object) => Promise<Answer>;
  readonly print: (value: unknown, text: string) => void;
  readonly act: (method: Method, path: string, body?: object) => Promise<void>;
  readonly list: (path: string, columns: readonly string[]) => Promise<void>;
}

function addAccountCommands(account: Command, { act, ask, list, print }: Actions): void {
  account
    .command("create")
    .description("a new account; prints the link by which its Owner sets a password, mailed too, if `smtp` is set up")
    .requiredOption("--name <name>")
    .requiredOption("--owner-email <email>")
    .option("--package <package>", "Starter, Pro, Business or Business Plus; its billing period begins now")
    .action((wish: object) => act("POST", "/accounts", wish));
  account
    .command("list")
    .description("all accounts")
    .action(() => list("/accounts", ["id", "name", "package", "state", "periodEnd", "ownerUserId"]));
  account
    .command("show <id>")
    .description("an account with its users")
    .action(async (id: string) => {
      const shown = await ask<Item & { users: Item[] }>("GET", `/accounts/${encodeURIComponent(id)}`);
      const { users, ...item } = shown;
      const columns = ["id", "email", "role", "blocked", "allowedModels", "creditLimit"];
      print(shown, `${itemText(item)}\n\n${listText(users, columns)}`);
    });
}

function addUserCommands(user: Command, { act }: Pick<Actions, "act">): void {
  restrictable(user.command("create"))
    .description("a new user; prints the link by which they set a password, mailed too, if `smtp` is set up")
    .requiredOption("--account <id>")
    .requiredOption("--email <email>")
    .addOption(new Option("--role <role>").choices(["owner", "admin", "member"]).makeOptionMandatory())
    .action(({ account, email, role, ...wish }: RestrictionOptions & Record<"account" | "email" | "role", string>) =>
      act("POST", "/users", { accountId: account, email, role, ...restrictions(wish) }),
    );
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

function addKeyCommands(key: Command, { act, list }: Pick<Actions, "act" | "list">): void {
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
    .description("the keys of a user")
    .requiredOption("--user <id>")
    .action(({ user }: { user: string }) =>
      list(`/keys?${query({ user })}`, [
        "id",
        "name",
        "state",
        "lastFour",
        "allowedModels",
        "creditLimit",
        "expiresAt",
      ]),
    );
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

interface RestrictionOptions {
  readonly model?: string[];
  readonly allModels?: boolean;
  readonly creditLimit?: string | false;
}

function restrictable(command: Command): Command {
  return command
    .option("--model <model>", "may be called; repeat for more", (model: string, all?: string[]) => [
      ...(all ?? []),
      model,
    ])
    .addOption(new Option("--all-models", "every model may be called").conflicts("model"))
    .option("--credit-limit <credits>", "per billing period", credits)
    .option("--no-credit-limit", "no limit but the package's");
}

function restrictions({ model, allModels, creditLimit }: RestrictionOptions): object {
  return {
    ...(allModels ? { allowedModels: null } : model ? { allowedModels: model } : {}),
    ...(creditLimit === undefined ? {} : { creditLimit: creditLimit === false ? null : creditLimit }),
  };
}

function changes(wish: object): object {
  if (Object.keys(wish).length === 0) throw new CommanderError(2, "weiche.nothing", "say what to change (see --help)");
  return wish;
}

function credits(text: string): string {
  if (parseFactor(text) === undefined)
    throw new InvalidArgumentError("Credits are a number with at most three places.");
  return text;
}

function instant(text: string): string {
  try {
    return Temporal.Instant.from(text).toString();
  } catch {
    throw new InvalidArgumentError("An instant looks like 2027-01-31T18:00:00+01:00.");
  }
}

function query(fields: Readonly<Record<string, string | undefined>>): string {
  return new URLSearchParams(
    Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined),
  ).toString();
}

interface UsageOptions extends Readonly<Partial<Record<"from" | "to" | "by", string>>> {
  readonly account: string;
  readonly csv?: boolean;
}

function usageCsv({ by, rows }: UsageReport): string {
  const named = by === "key" || by === "user" ? ["name" as const] : [];
  const columns = [by, ...named, "requests", "promptTokens", "completionTokens", "totalTokens", "credits"] as const;
  return [columns, ...rows.map((row) => columns.map((column) => row[column] ?? null))].map(csvLine).join("");
}

function usageText({ by, from, to, asOf, totals, rows }: UsageReport): string {
  const columns = ["requests", "promptTokens", "completionTokens", "totalTokens", "credits"];
  const named = by === "key" || by === "user" ? ["name"] : [];
  const table = listText(
    [...rows.map((row) => ({ ...row })), { [by]: "total", ...totals }],
    [by, ...named, ...columns],
  );
  return `${from} to ${to}, as of ${asOf}\n\n${table}`;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.code.startsWith("weiche.")) console.error(`weiche: ${error.message}`);
    return error.exitCode === 0 ? 0 : 2;
  }
  if (error instanceof NobodyThere) {
    console.error(`weiche: no router there: ${error.message} (is it running? another --data-dir?)`);
    return 3;
  }
  console.error(`weiche: ${error instanceof Error ? error.message : String(error)}`);
  return 1;
}
