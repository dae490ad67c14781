/** Options that restrict a user or a key, and what they ask for. */
import { CommanderError, InvalidArgumentError, type Command, Option } from "commander";
import { parseFactor } from "@weiche/shared/credits.ts";

export interface RestrictionOptions {
  readonly model?: string[];
  readonly allModels?: boolean;
  readonly creditLimit?: string | false;
}

export function restrictable(command: Command): Command {
  return command
    .option("--model <model>", "may be called; repeat for more", (model: string, all?: string[]) => [
      ...new Set([...(all ?? []), model]),
    ])
    .addOption(new Option("--all-models", "every model may be called").conflicts("model"))
    .option("--credit-limit <credits>", "per billing period", credits)
    .option("--no-credit-limit", "no limit but the package's");
}

export function restrictions({ model, allModels, creditLimit }: RestrictionOptions): object {
  return {
    ...(allModels ? { allowedModels: null } : model ? { allowedModels: model } : {}),
    ...(creditLimit === undefined ? {} : { creditLimit: creditLimit === false ? null : creditLimit }),
  };
}

/** Returns the wish if it changes something; throws for wrong usage otherwise. */
export function changes(wish: object): object {
  if (Object.keys(wish).length === 0) throw new CommanderError(2, "weiche.nothing", "say what to change (see --help)");
  return wish;
}

function credits(text: string): string {
  if (parseFactor(text) === undefined)
    throw new InvalidArgumentError("Credits are a number with at most three places.");
  return text;
}
