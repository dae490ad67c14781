/** Turns a command's error into its exit code and a line for stderr, or JSON with `--json`. */
import { CommanderError, type Command } from "commander";
import { NobodyThere } from "@weiche/shared/program/admin-socket.ts";
import { plainJson, plainText } from "@weiche/shared/program/plain-text.ts";
import { Failed, Stopped } from "./client.ts";

/** `refused`: the router refused or failed, or `--timeout` passed. `stopped`: by Ctrl-C. */
type Code = "refused" | "usage" | "no-router" | "stopped";
/** A shell reports 130 for a program that Ctrl-C ended. */
const exitCodes: Readonly<Record<Code, number>> = { refused: 1, usage: 2, "no-router": 3, stopped: 130 };

interface CliError {
  readonly code: Code;
  readonly error: string;
  /** The options and arguments that are wrong, such as `--account` or `<id>`. */
  readonly options?: readonly string[];
}

/**
 * Returns the exit code and the text to print. Help and version have no error text. `command`: the command that ran.
 */
export function failureOf(error: unknown, command: Command | undefined, wantsJson: boolean): [number, string?] {
  if (error instanceof CommanderError && /^commander\.(help|helpDisplayed|version)$/.test(error.code))
    return [error.exitCode === 0 ? 0 : 2];
  const told = tell(error, command);
  const text = wantsJson ? plainJson(JSON.stringify(told)) : `weiche: ${plainText(told.error)}`;
  return [exitCodes[told.code], text];
}

function tell(error: unknown, command: Command | undefined): CliError {
  if (error instanceof CommanderError) {
    const message = error.message.replace(/^error: /, "");
    const option = /--[a-z][a-z-]*|(?<=argument ')[^']+/.exec(message)?.[0];
    return { code: "usage", error: message, ...(option && { options: [option] }) };
  }
  if (error instanceof NobodyThere) {
    return {
      code: "no-router",
      error: `no router found: ${error.message} (is the router running? is --data-dir right?)`,
    };
  }
  if (error instanceof Stopped) return { code: "stopped", error: error.message };
  if (error instanceof Failed && error.details.length > 0) return wrongOptions(error, command);
  return { code: "refused", error: error instanceof Error ? error.message : String(error) };
}

/** Options of parameters, where the names differ. */
const optionOfParam: Readonly<Record<string, string>> = {
  allowedModels: "model",
  creditLimit: "credit-limit",
  expiresAt: "expires",
  userId: "user",
  from: "from",
  to: "to",
};

/** Replaces the route's parameter names with the command's option and argument names. */
function wrongOptions({ message, details }: Failed, command: Command | undefined): CliError {
  const named = details.map(({ param }) => ({ param, option: nameOf(param, command) }));
  const error = named.reduce(
    (text, { param, option }) => (option ? text.replace(`${param} is`, `${option} is`) : text),
    message,
  );
  return { code: "refused", error, options: named.flatMap(({ option }) => option ?? []) };
}

function nameOf(param: string, command: Command | undefined): string | undefined {
  const word = param.split(".")[0]!;
  const dashed = optionOfParam[word] ?? word.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const options = [`--${dashed}`, ...(word === "from" ? ["--since"] : word === "to" ? ["--until"] : [])];
  const known = options.find((long) => command?.options.some((option) => option.long === long));
  if (known !== undefined) return known;
  const argument = command?.registeredArguments.find((each) => each.name() === word);
  return argument && `<${argument.name()}>`;
}
