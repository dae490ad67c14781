/** `weiche credits …`: what runs over all accounts. */
import type { Command } from "commander";
import type { Actions } from "./cli.ts";

export function addBusinessCommands(program: Command, { act }: Pick<Actions, "act">): void {
  program
    .command("credits")
    .description("usage against quotas and limits")
    .command("evaluate")
    .description("now, instead of within a minute; also writes the invoice lines of periods that have begun")
    .action(() => act("POST", "/credits/evaluate"));
}
