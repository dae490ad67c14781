/** `weiche`: the operators' command. Exit codes: 0 done; 1 refused or failed, the reason on stderr; 2 wrong usage; 3 no router there. */
import { join, resolve } from "node:path";
import { Command, CommanderError } from "commander";
import { NobodyThere, askSocket } from "@weiche/shared/program/admin-socket.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { plainJson, plainText } from "@weiche/shared/program/plain-text.ts";
import { itemText, listText, type Item } from "./cli-text.ts";
import { addBusinessCommands } from "./business-commands.ts";
import { addIdentityCommands } from "./identity-commands.ts";
import { addKeyCommands } from "./key-commands.ts";
import { addSubscriptionCommands } from "./subscription-commands.ts";
import { addUsageCommands } from "./usage-commands.ts";
import { addUserCommands } from "./user-commands.ts";
import { addNodeCommands } from "./node-commands.ts";
import { modelsText, nodesText } from "./node-tables.ts";
import type { ModelForOperators, NodeForOperators } from "../operator/node-views.ts";

class Failed extends Error {}

type Method = "GET" | "POST" | "PATCH";

/** Runs one command. Returns the exit code. */
export async function runCli(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  try {
    await createProgram(env).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return exitCodeOf(error);
  }
}

/** Every command there is. */
export function createProgram(env: NodeJS.ProcessEnv): Command {
  const program = new Command("weiche")
    .description("Looks at and steers the router of this machine.")
    .option("--json", "print JSON instead of tables")
    .option("--data-dir <dir>", "the router's data directory", dataDirectory(env))
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
    console.log(program.opts<{ json?: boolean }>().json ? plainJson(JSON.stringify(value, null, 2)) : text);
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
  addUserCommands(user, actions);
  addIdentityCommands(user, actions);
  addKeyCommands(program.command("key").description("API keys"), actions);
  addSubscriptionCommands(program.command("subscription").description("the package of an account"), actions);
  addBusinessCommands(program, actions);
  addUsageCommands(program.command("usage"), actions);
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
  return program;
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

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.code.startsWith("weiche.")) console.error(`weiche: ${plainText(error.message)}`);
    return error.exitCode === 0 ? 0 : 2;
  }
  if (error instanceof NobodyThere) {
    console.error(`weiche: no router there: ${plainText(error.message)} (is it running? another --data-dir?)`);
    return 3;
  }
  console.error(`weiche: ${plainText(error instanceof Error ? error.message : String(error))}`);
  return 1;
}
