/** `weiche log`: the level of the router's log. */
import { Argument, type Command } from "commander";
import type { Actions } from "./actions.ts";
import type { Answer } from "./client.ts";
import { duration, inWords } from "./duration.ts";

export function addLogCommand(program: Command, { ask, print }: Actions): void {
  program
    .command("log")
    .description("the level of the router's log; with a level, that one for a while: it falls back by itself")
    .addArgument(new Argument("[level]").choices(["trace", "debug", "info", "warn", "error", "fatal"]))
    .option("--for <duration>", "such as 5m, at most 24h", duration, duration("10m"))
    .action(async (level: string | undefined, { for: ms }: { for: number }) => {
      const seconds = Math.max(1, Math.round(ms / 1_000));
      const state = level === undefined ? await ask("GET /log") : await ask("POST /log", { body: { level, seconds } });
      print(state, () => levelText(state));
    });
}

function levelText({ level, then }: Answer<"GET /log">): string {
  return then === undefined ? level : `${level}, and ${then.level} again in ${inWords(then.seconds)}`;
}
