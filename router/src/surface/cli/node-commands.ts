/**
 * `weiche nodes`, `models`, `catalogue`, `node`, `prewarm` and `console`: shows and controls nodes and the catalogue, and
 * makes links to the console.
 */
import { parseListen } from "@weiche/shared/http/listen.ts";
import { nodeTargets } from "@weiche/shared/program/ops-server.ts";
import { Argument, Option, type Command } from "commander";
import type { Actions } from "./actions.ts";
import { Failed } from "./client.ts";
import { addDrainCommand } from "./drain-command.ts";
import { modelsText, nodesScene, nodeText, nodesText } from "./node-tables.ts";
import { watch } from "./watch.ts";

export function addNodeCommands(program: Command, actions: Actions): void {
  const { ask, print, printItem } = actions;
  const nodes = program
    .command("nodes")
    .description("List nodes with their slots and active models.")
    .option(
      "--prometheus-sd <host:port>",
      "print a file_sd_configs file for Prometheus instead; host:port is the router's operations listener (listen.ops)",
    )
    .addOption(new Option("--watch", "refresh every second until Ctrl-C").conflicts("prometheusSd"))
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
    .description("Show a node's slots, hardware and load.")
    .action(async (id: string) => {
      const node = await ask("showNode", { id });
      print(node, (width) => nodeText(node, width));
    });
  const steer = program.command("node").description("Control a node's maintenance and known failures.");
  addDrainCommand(steer, actions);
  steer
    .command("maintenance")
    .description("Turn maintenance on or off. In maintenance, running requests finish and the node gets no new ones.")
    .argument("<node>")
    .addArgument(
      new Argument("<on|off>", "off does not end maintenance set by `weiche-agent maintenance on`").choices([
        "on",
        "off",
      ]),
    )
    .action(async (node: string, wish: string) => {
      const { heldByNode, ...done } = await ask("setMaintenance", { body: { node, on: wish === "on" } });
      if (heldByNode)
        throw new Failed(
          `${done.node} stays in maintenance, because it was turned on at the node: run "weiche-agent maintenance off" there`,
        );
      printItem(done);
    });
  steer
    .command("acknowledge <node>")
    .description("No longer show the known failures of a node's engines. Later failures are shown again.")
    .action(async (node: string) => printItem(await ask("acknowledgeFailures", { body: { node } })));
  program
    .command("prewarm")
    .description("Activate a model as soon as no request for another model is in its way.")
    .argument("<model>")
    .option("--node <node>", "the node; if unset, the router chooses one as for a request")
    .action(async (model: string, { node }: { node?: string }) => {
      printItem(await ask("prewarm", { body: { model, node } }));
    });
  program
    .command("models")
    .description("List the catalogue's models and the nodes that offer them.")
    .action(async () => {
      const models = await ask("listCatalogue");
      print(models, (width) => modelsText(models, width));
    });
  program
    .command("catalogue")
    .description("Reload the model catalogue.")
    .command("reload")
    .description("Load the changed catalogue file. If it has mistakes, the current catalogue stays.")
    .action(async () => printItem(await ask("reloadCatalogue")));
  program
    .command("console")
    .description("Print a link that opens the operators' console in a browser. It works once, within a minute.")
    .action(async () => {
      const link = await ask("makeConsoleLink");
      const { hostname, port } = new URL(link.url);
      const tunnel =
        hostname === "127.0.0.1" ? ` To open it on another host: ssh -L ${port}:127.0.0.1:${port} <this host>` : "";
      print(link, () => `${link.url}\n\nThe link works once, within a minute.${tunnel}`);
    });
}
