/** `weiche`: the operators' command. Exit codes: 0 done; 1 refused or failed, the reason on stderr; 2 wrong usage; 3 no router there. */
import { join, resolve } from "node:path";
import { Command, CommanderError } from "commander";
import { NobodyThere } from "@weiche/shared/program/admin-socket.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { plainJson, plainText } from "@weiche/shared/program/plain-text.ts";
import { version } from "@weiche/shared/program/version.ts";
import { addAccountCommands } from "./account-commands.ts";
import { addAuditCommands } from "./audit-commands.ts";
import { itemText, listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import { askRouter, type Address, type Answer, type Sent } from "./client.ts";
import { addCreditsCommands } from "./credits-commands.ts";
import { addKeyCommands } from "./key-commands.ts";
import { addNodeCommands } from "./node-commands.ts";
import { addSubscriptionCommands } from "./subscription-commands.ts";
import { addUsageCommands } from "./usage-commands.ts";
import { addUserCommands } from "./user-commands.ts";

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
    .version(version)
    .option("--json", "print JSON instead of tables")
    .option("--data-dir <dir>", "the router's data directory", dataDirectory(env))
    .option("--socket <path>", "the router's admin socket, if it is elsewhere")
    .exitOverride()
    .configureHelp({ showGlobalOptions: true });

  function ask<A extends Address>(address: A, sent: Sent = {}): Promise<Answer<A>> {
    const { dataDir, socket } = program.opts<{ dataDir: string; socket?: string }>();
    return askRouter(resolve(socket ?? join(dataDir, "router", "admin.sock")), address, sent);
  }
  function print(value: unknown, text: string): void {
    console.log(program.opts<{ json?: boolean }>().json ? plainJson(JSON.stringify(value, null, 2)) : text);
  }
  const actions: Actions = {
    ask,
    print,
    printItem: (item) => print(item, itemText(item)),
    printList: (items, columns) => print(items, listText(items, columns)),
  };
  addAccountCommands(program, actions);
  addUserCommands(program.command("user").description("the people of an account"), actions);
  addKeyCommands(program.command("key").description("API keys"), actions);
  addSubscriptionCommands(program.command("subscription").description("the package of an account"), actions);
  addCreditsCommands(program.command("credits").description("usage against quotas and limits"), actions);
  addAuditCommands(program.command("audit"), actions);
  addUsageCommands(program.command("usage"), actions);
  addNodeCommands(program, actions);
  return program;
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
