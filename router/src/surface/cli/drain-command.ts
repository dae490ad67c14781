/** `weiche node drain`: puts a node into maintenance, and waits until no request runs or waits on it. */
import { Option, type Command } from "commander";
import { formatTable } from "@weiche/shared/program/table.ts";
import type { Actions } from "./actions.ts";
import { Failed, type Answer } from "./client.ts";
import { inWords } from "@weiche/shared/program/duration.ts";
import { duration } from "./duration.ts";
import { activeOf } from "./node-tables.ts";
import { watch, type Scene } from "./watch.ts";

type Node = Answer<"showNode">;

export function addDrainCommand(node: Command, actions: Actions): void {
  const { ask, print } = actions;
  node
    .command("drain")
    .description(
      "Put a node into maintenance; with --wait, wait until it is idle. `node maintenance NODE off` ends it.",
    )
    .argument("<node>")
    .option("--wait", "wait until no request runs or waits on the node; exit with 1 after --timeout")
    .addOption(
      new Option("--timeout <duration>", "how long to wait, such as 30s or 1h")
        .argParser(duration)
        .default(duration("10m"), "10m"),
    )
    .action(async (named: string, { wait, timeout }: { wait?: boolean; timeout: number }) => {
      const { node: name } = await ask("setMaintenance", { body: { node: named, on: true } });
      const look = () => ask("showNode", { id: name });
      if (wait) return waitUntilDrained(actions, name, look, timeout);
      const seen = await look();
      print(progressOf(seen), (width) => drainText(seen, width));
    });
}

async function waitUntilDrained(actions: Actions, name: string, look: () => Promise<Node>, timeoutMs: number) {
  const { terminal, wantsJson } = actions;
  let last: Node | undefined;
  const scene = async () => sceneOf((last = await look()));
  if (!wantsJson()) terminal.errors.write("Ctrl-C stops waiting. The node stays in maintenance.\n");
  if (!(await watch(actions, scene, timeoutMs)))
    throw new Failed(`after ${inWords(timeoutMs / 1000)}: ${blockers(last!)}; ${name} stays in maintenance`);
  if (!wantsJson())
    terminal.output.write(`${name} is drained. To end maintenance: weiche node maintenance ${name} off\n`);
}

/** A line of `--json`. Ages date from the node's last report. */
function progressOf(node: Node) {
  const { name, state, maintenanceReported, reportAgeSeconds, slots } = node;
  return {
    node: name,
    drained: isDrained(node),
    ...{ state, maintenanceReported, reportAgeSeconds },
    slots: slots.map((slot) => {
      const { name: slotName, state: slotState, active, running, waiting, inFlight, oldestRunningSeconds } = slot;
      return { name: slotName, state: slotState, active, running, waiting, inFlight, oldestRunningSeconds };
    }),
  };
}

/** Trusts only a report from after the node's change to maintenance. Answers on their way count as running. */
function isDrained({ state, maintenanceReported, slots }: Node): boolean {
  const isQuiet = slots.every(({ running, waiting, inFlight }) => running + waiting + inFlight === 0);
  return state === "maintenance" && maintenanceReported && isQuiet;
}

function sceneOf(node: Node): Scene {
  const lines = node.slots.map(
    ({ name, running, waiting, inFlight }) =>
      [`${node.name}/${name}`, `${running} running, ${waiting} waiting, ${inFlight} by this router`] as const,
  );
  return {
    value: progressOf(node),
    text: (width) => drainText(node, width),
    lines: new Map([[node.name, stateText(node)], ...lines]),
    isOver: isDrained(node),
  };
}

function drainText(node: Node, width?: number): string {
  const rows = node.slots.map((slot) => [
    ...[slot.name, slot.state, activeOf(slot), slot.running],
    slot.oldestRunningSeconds === undefined ? undefined : inWords(slot.oldestRunningSeconds),
    ...[slot.waiting, slot.inFlight],
  ]);
  const table = formatTable(["SLOT", "STATE", "ACTIVE", "RUNNING", "OLDEST", "WAITING", "BY THIS ROUTER"], rows, width);
  return `${node.name}: ${stateText(node)}\n\n${table}`;
}

function stateText(node: Node): string {
  if (isDrained(node)) return "in maintenance, no requests run or wait";
  if (node.state === "gone") return "not linked to this router, its requests are unknown";
  if (node.state === "silent") return "not reporting, its requests are unknown";
  if (!node.maintenanceReported) return "not yet confirmed to be in maintenance";
  return "in maintenance, requests are finishing";
}

function blockers(node: Node): string {
  if (node.state !== "maintenance" || !node.maintenanceReported) return `${node.name} is ${stateText(node)}`;
  const held = node.slots.filter(({ running, waiting, inFlight }) => running + waiting + inFlight > 0);
  const parts = held.map(({ name, running, waiting, inFlight, oldestRunningSeconds: oldest }) => {
    const age = oldest === undefined ? "" : `, the oldest for ${inWords(oldest)}`;
    return `slot ${name}: ${running} running${age}, ${waiting} waiting, ${inFlight} by this router`;
  });
  return `${node.name} still has requests (${parts.join("; ")})`;
}
