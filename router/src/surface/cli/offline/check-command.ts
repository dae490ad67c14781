/** `weiche check-config`: checks router.yaml, its catalogue, certificates and database. Needs no router. */
import type { Command } from "commander";
import { verdictLines } from "@weiche/shared/files/config-file.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import type { Actions } from "../actions.ts";
import { Failed } from "../client.ts";

export function addCheckCommand(program: Command, { print }: Actions, env: NodeJS.ProcessEnv): void {
  program
    .command("check-config")
    .argument("[file]", "a router.yaml; defaults to WEICHE_CONFIG, else /etc/weiche/router.yaml")
    .description("Check a router.yaml, its catalogue, certificates and keys, and list every mistake with its line.")
    .action(async (named: string | undefined) => {
      const { checkRouterConfig } = await import("./config-check.ts");
      const { dataDir } = program.opts<{ dataDir: string }>();
      const verdict = await checkRouterConfig(named ?? env["WEICHE_CONFIG"] ?? "/etc/weiche/router.yaml", dataDir);
      const all = [verdict, ...(verdict.catalogue ? [verdict.catalogue] : [])];
      print(verdict, () => all.flatMap(verdictLines).map(plainText).join("\n"));
      const wrong = all.filter(({ mistakes }) => mistakes.length > 0).map(({ file }) => file);
      if (wrong.length > 0) throw new Failed(`the router would not start: correct ${wrong.join(" and ")}`);
    });
}
