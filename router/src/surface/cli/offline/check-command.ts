/** `weiche check-config`: judges router.yaml, its catalogue and its certificates. It needs no router. */
import type { Command } from "commander";
import { verdictLines } from "@weiche/shared/files/config-file.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import type { Actions } from "../actions.ts";
import { Failed } from "../client.ts";

export function addCheckCommand(program: Command, { print }: Actions, env: NodeJS.ProcessEnv): void {
  program
    .command("check-config")
    .argument("[file]", "a router.yaml; absent: that of WEICHE_CONFIG, else /etc/weiche/router.yaml")
    .description("every mistake of a router.yaml and its catalogue with its line; certificates and keys are opened")
    .action(async (named: string | undefined) => {
      const { checkRouterConfig } = await import("./config-check.ts");
      const verdict = checkRouterConfig(named ?? env["WEICHE_CONFIG"] ?? "/etc/weiche/router.yaml");
      const all = [verdict, ...(verdict.catalogue ? [verdict.catalogue] : [])];
      print(verdict, () => all.flatMap(verdictLines).map(plainText).join("\n"));
      const wrong = all.filter(({ mistakes }) => mistakes.length > 0).map(({ file }) => file);
      if (wrong.length > 0) throw new Failed(`correct ${wrong.join(" and ")}: the router would not start`);
    });
}
