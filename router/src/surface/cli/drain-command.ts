/** `weiche node drain`: maintenance on, and waiting until nothing runs or waits on the node. */
import type { Command } from "commander";
import { formatTable } from "@weiche/shared/program/table.ts";
import type { Actions } from "./actions.ts";
import { Failed, type Answer } from "./client.ts";
import { inWords } from "@weiche/shared/program/duration.ts";
import { duration } from "./duration.ts";
import { watch, type Scene } from "./watch.ts";

type Node = Answer<"showNode">;

export function addDrainCommand(node: Command, actions: Actions): void {
  const { ask, print } = actions;
  node
    .command("drain")
    .description(
      "maintenance on; with --wait, blocks until nothing runs or waits there. `maintenance NODE off` ends it",
    )
    .argument("<node>")
    .option("--wait", "until nothing runs or waits there; exit code 1 if something still does after --timeout")
    .option("--timeout <duration>", "how long to wait, such as 10m", duration, duration("10m"))
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
  if (!wantsJson()) terminal.errors.write("Ctrl-C ends the waiting, not the maintenance.\n");
  if (!(await watch(actions, scene, timeoutMs)))
    throw new Failed(`after ${inWords(timeoutMs / 1000)}: ${blockers(last!)}; ${name} stays in maintenance`);
  if (!wantsJson()) terminal.output.write(`${name} is drained. To take it back: weiche node maintenance ${name} off\n`);
}

/** A line of `--json`. Ages are as of the node's last report. */
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

/** The report that says so must be one of after the node took the maintenance over, and no answer be on its way. */
export function isDrained({ state, maintenanceReported, slots }: Node): boolean {
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
    ...[slot.name, slot.state, slot.active, slot.running],
    slot.oldestRunningSeconds === undefined ? undefined : inWords(slot.oldestRunningSeconds),
    ...[slot.waiting, slot.inFlight],
  ]);
  const table = formatTable(["SLOT", "STATE", "ACTIVE", "RUNNING", "OLDEST", "WAITING", "BY THIS ROUTER"], rows, width);
  return `${node.name}: ${stateText(node)}\n\n${table}`;
}

function stateText(node: Node): string {
  if (isDrained(node)) return "in maintenance, nothing runs or waits there";
  if (node.state === "gone") return "not linked to this router: what runs there is not known";
  if (node.state === "silent") return "does not report: what runs there is not known";
  if (!node.maintenanceReported) return "has not said yet that it takes nothing new";
  return "in maintenance, what is there ends";
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
