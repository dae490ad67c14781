/**
 * `weiche nodes` and `nodes show`, `models`, `catalogue`, `node`, `prewarm` and `console`: nodes and the
 * catalogue, what operators want of them, and the link to where they see them.
 */
import { parseListen } from "@weiche/shared/http/listen.ts";
import { nodeTargets } from "@weiche/shared/program/ops-server.ts";
import { Argument, Option, type Command } from "commander";
import type { Actions } from "./actions.ts";
import { addDrainCommand } from "./drain-command.ts";
import { modelsText, nodesScene, nodeText, nodesText } from "./node-tables.ts";
import { watch } from "./watch.ts";

export function addNodeCommands(program: Command, actions: Actions): void {
  const { ask, print, printItem } = actions;
  const nodes = program
    .command("nodes")
    .description("nodes, their slots and what is active")
    .option(
      "--prometheus-sd <host:port>",
      "instead: a file for file_sd_configs of Prometheus, which scrapes the nodes through this router; host:port: its operations listener",
    )
    .addOption(new Option("--watch", "again every second, until Ctrl-C").conflicts("prometheusSd"))
    .action(async ({ prometheusSd, watch: wish }: { prometheusSd?: string; watch?: boolean }) => {
      if (wish) return void (await watch(actions, async () => nodesScene(await ask("listNodes"))));
      const all = await ask("listNodes");
      if (prometheusSd === undefined) return print(all, (width) => nodesText(all, width));
      parseListen(prometheusSd, "--prometheus-sd");
      const names = all.map(({ name }) => name);
      const targets = nodeTargets(names, prometheusSd);
      print(targets, () => JSON.stringify(targets, null, 2));
    });
  nodes
    .command("show <name>")
    .description("one node: its slots, the machine that it runs on and how that does")
    .action(async (id: string) => {
      const node = await ask("showNode", { id });
      print(node, (width) => nodeText(node, width));
    });
  const steer = program.command("node").description("steer a node");
  addDrainCommand(steer, actions);
  steer
    .command("maintenance")
    .description("on: nothing new, what runs finishes; off, unless the node's own side says otherwise")
    .argument("<node>")
    .addArgument(new Argument("<on|off>").choices(["on", "off"]))
    .action(async (node: string, wish: string) => {
      printItem(await ask("setMaintenance", { body: { node, on: wish === "on" } }));
    });
  program
    .command("prewarm")
    .description("activate a model as soon as nobody is in its way, on the node where a request for it would go")
    .argument("<model>")
    .option("--node <node>")
    .action(async (model: string, { node }: { node?: string }) => {
      printItem(await ask("prewarm", { body: { model, node } }));
    });
  program
    .command("models")
    .description("the catalogue, and who serves what")
    .action(async () => {
      const models = await ask("listCatalogue");
      print(models, (width) => modelsText(models, width));
    });
  program
    .command("catalogue")
    .description("the model catalogue")
    .command("reload")
    .description("take over the changed file; a wrong one is refused and the old catalogue stays")
    .action(async () => printItem(await ask("reloadCatalogue")));
  program
    .command("console")
    .description("a link that opens the console in a browser, once, within a minute")
    .action(async () => {
      const link = await ask("makeConsoleLink");
      const { hostname, port } = new URL(link.url);
      const tunnel = hostname === "127.0.0.1" ? ` On another host: ssh -L ${port}:127.0.0.1:${port} <this host>` : "";
      print(link, () => `${link.url}\n\nIt works once, within a minute.${tunnel}`);
    });
}
