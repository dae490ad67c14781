/** Options that restrict a user or a key. */
import { CommanderError, InvalidArgumentError, type Command, Option } from "commander";
import { parseFactor } from "@weiche/shared/credits.ts";

export interface RestrictionOptions {
  readonly model?: string[];
  readonly allModels?: boolean;
  readonly creditLimit?: string | false;
}

export function restrictable(command: Command): Command {
  return command
    .option("--model <model>", "allow only this model; repeat for more", (model: string, all?: string[]) => [
      ...new Set([...(all ?? []), model]),
    ])
    .addOption(new Option("--all-models", "allow every model").conflicts("model"))
    .option("--credit-limit <credits>", "credit limit per billing period", credits)
    .option("--no-credit-limit", "no credit limit except the package's quota");
}

export function restrictions({ model, allModels, creditLimit }: RestrictionOptions): object {
  return {
    ...(allModels ? { allowedModels: null } : model ? { allowedModels: model } : {}),
    ...(creditLimit === undefined ? {} : { creditLimit: creditLimit === false ? null : creditLimit }),
  };
}

/** Returns the wish. Throws a usage error if it changes nothing. */
export function changes(wish: object): object {
  if (Object.keys(wish).length === 0) throw new CommanderError(2, "weiche.nothing", "no change given (see --help)");
  return wish;
}

function credits(text: string): string {
  if (parseFactor(text) === undefined)
    throw new InvalidArgumentError("Credits are a number with at most three decimal places.");
  return text;
}
