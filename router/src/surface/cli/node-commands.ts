/** `weiche node …` and `weiche prewarm`: what operators want of the nodes. */
import { Argument, type Command } from "commander";
import type { Actions } from "./cli.ts";

export function addNodeCommands(program: Command, { act }: Pick<Actions, "act">): void {
  program
    .command("node")
    .description("steer a node")
    .command("maintenance")
    .description("on: nothing new, what runs finishes; off, unless the node's own side says otherwise")
    .argument("<node>")
    .addArgument(new Argument("<on|off>").choices(["on", "off"]))
    .action((node: string, wish: string) => act("POST", "/nodes/maintenance", { node, on: wish === "on" }));
  program
    .command("prewarm")
    .description("activate a model as soon as nobody is in its way, on the node where a request for it would go")
    .argument("<model>")
    .option("--node <node>")
    .action((model: string, { node }: { node?: string }) => act("POST", "/prewarm", { model, node }));
}
