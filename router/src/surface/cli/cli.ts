/** `weiche`: the operators' command. Exit codes: 0 done; 1 refused or failed, with the reason on stderr; 2 wrong usage; 3 no router found. */
import { join, resolve } from "node:path";
import { Command } from "commander";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { plainJson } from "@weiche/shared/program/plain-text.ts";
import { version } from "@weiche/shared/program/version.ts";
import { addAccountCommands } from "./account-commands.ts";
import { addAuditCommands } from "./audit-commands.ts";
import { addBackupCommands } from "./offline/backup-commands.ts";
import { addCertificateCommands } from "./offline/certificate-commands.ts";
import { addCheckCommand } from "./offline/check-command.ts";
import { addSimulateCommand } from "./offline/simulate-command.ts";
import { failureOf } from "./cli-error.ts";
import { itemText, listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import { askRouter, type Ask } from "./client.ts";
import { addCreditsCommands } from "./credits-commands.ts";
import { addInvoiceCommands } from "./invoices/invoice-commands.ts";
import { addKeyCommands } from "./key-commands.ts";
import { addNodeCommands } from "./node-commands.ts";
import { addRequestCommands } from "./requests/request-commands.ts";
import { addRouterCommands } from "./router-commands.ts";
import { addSubscriptionCommands } from "./subscription-commands.ts";
import { addUsageCommands } from "./usage-commands.ts";
import { processTerminal, widthOf, type Terminal } from "./terminal.ts";
import { addUserCommands } from "./user-commands.ts";

/** Runs one command. Returns the exit code. */
export async function runCli(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  terminal: Terminal = processTerminal,
): Promise<number> {
  const program = createProgram(env, terminal);
  let running: Command | undefined;
  program.hook("preAction", (_program, command) => void (running = command));
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const [code, text] = failureOf(error, running, args.includes("--json"));
    if (text !== undefined) terminal.errors.write(`${text}\n`);
    return code;
  }
}

/** Builds the command line with all commands. */
export function createProgram(env: NodeJS.ProcessEnv, terminal: Terminal = processTerminal): Command {
  const program = new Command("weiche")
    .description("Inspect and control the local router.")
    .version(version)
    .option("--json", "print JSON instead of tables")
    .option("--data-dir <dir>", "the router's data directory", dataDirectory(env))
    .option("--socket <path>", "the router's admin socket, if not in the data directory")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.output.write(text),
      writeErr: (text) => void terminal.errors.write(text),
      outputError: () => {}, // runCli prints errors
    })
    .configureHelp({ showGlobalOptions: true });

  const ask: Ask = (name, sent = {}) => {
    const { dataDir, socket } = program.opts<{ dataDir: string; socket?: string }>();
    return askRouter(resolve(socket ?? join(dataDir, "router", "admin.sock")), name, sent);
  };
  const wantsJson = () => program.opts<{ json?: boolean }>().json ?? false;
  const width = () => widthOf(terminal, env);
  const write = (text: string) => void terminal.output.write(`${text}\n`);
  const print: Actions["print"] = (value, text) =>
    write(wantsJson() ? plainJson(JSON.stringify(value, null, 2)) : text(width()));
  const actions: Actions = {
    ask,
    ...{ print, terminal, wantsJson, width },
    printItem: (item) => print(item, () => itemText(item)),
    printList: (items, columns) => print(items, (wide) => listText(items, columns, wide)),
    printLine: (value, text) => write(wantsJson() ? plainJson(JSON.stringify(value)) : text),
  };
  addAccountCommands(program, actions);
  addUserCommands(program.command("user").description("Manage the people of an account."), actions);
  addKeyCommands(program.command("key").description("Manage API keys."), actions);
  addSubscriptionCommands(
    program.command("subscription").description("Show and change an account's package."),
    actions,
  );
  addInvoiceCommands(
    program.command("invoices").description("List, show and export invoices, and set billing addresses."),
    actions,
  );
  addCreditsCommands(program.command("credits").description("Compare usage with quotas and limits."), actions);
  addAuditCommands(program.command("audit"), actions);
  addUsageCommands(program.command("usage"), actions);
  addNodeCommands(program, actions);
  addBackupCommands(program, actions, env);
  addCheckCommand(program, actions, env);
  addSimulateCommand(program, actions);
  addRequestCommands(program, actions);
  addRouterCommands(program, actions);
  addCertificateCommands(
    program.command("certificates").description("Make and renew TLS certificates for routers and nodes."),
    actions,
  );
  return program;
}
