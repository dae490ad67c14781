/** `weiche top`: shows slots, models and accounts with their running requests. */
import { counted } from "@weiche/shared/program/amounts.ts";
import type { Command } from "commander";
import { formatTable } from "@weiche/shared/program/table.ts";
import type { Actions } from "../actions.ts";
import type { Answer } from "../client.ts";
import { inWords } from "@weiche/shared/program/duration.ts";
import { activeOf } from "../node-tables.ts";
import { watch, type Scene } from "../watch.ts";

interface Load {
  readonly nodes: Answer<"listNodes">;
  readonly load: Answer<"countRunning">;
  /** Names of accounts. Empty while the database does not answer. */
  readonly names: ReadonlyMap<string, string>;
}

/** Maximum numbers of models and of accounts in the tables. */
const shownMax = 10;

export function addTopCommand(program: Command, actions: Actions): void {
  const { ask, print, terminal, wantsJson } = actions;
  program
    .command("top")
    .description("Show the busiest slots, models and accounts. On a terminal, refresh every second until Ctrl-C.")
    .option("--once", "print once, also on a terminal")
    .action(async ({ once }: { once?: boolean }) => {
      const accounts = await ask("listAccounts").catch(() => []);
      const names = new Map(accounts.map(({ id, name }) => [id, name]));
      const look = async () => {
        const [nodes, load] = await Promise.all([ask("listNodes"), ask("countRunning")]);
        return topScene({ nodes, load, names });
      };
      if (!once && terminal.output.isTTY && !wantsJson()) return void (await watch(actions, look));
      const { value, text } = await look();
      print(value, text);
    });
}

function topScene(load: Load): Scene {
  return { value: topValue(load), text: (width) => topText(load, width), lines: new Map() };
}

function slotsOf(nodes: Load["nodes"]) {
  const slots = nodes.flatMap(({ name: node, state: nodeState, slots: ofNode }) =>
    ofNode.map((slot) => ({ ...slot, node, nodeState })),
  );
  return slots.toSorted((a, b) => b.running + b.waiting - (a.running + a.waiting));
}

function topValue({ nodes, load, names }: Load) {
  const accounts = load.accounts.map((one) => ({ ...one, name: names.get(one.accountId) ?? null }));
  const slots = slotsOf(nodes).map(({ node, name, state, active, next, running, waiting }) => ({
    ...{ node, slot: name, state, active, next, running, waiting },
  }));
  return { requests: load.requests, slots, models: load.models, accounts };
}

function topText({ nodes, load, names }: Load, width?: number): string {
  const slots = slotsOf(nodes).map((slot) => [
    ...[slot.node, slot.name, slot.nodeState === "live" ? slot.state : slot.nodeState],
    ...[activeOf(slot) ?? slot.failed, slot.next, slot.running, slot.waiting],
    slot.oldestRunningSeconds === undefined ? undefined : inWords(slot.oldestRunningSeconds),
  ]);
  const models = load.models.slice(0, shownMax).map(({ model, requests }) => [model, requests]);
  const accounts = load.accounts
    .slice(0, shownMax)
    .map(({ accountId, requests }) => [names.get(accountId), accountId, requests]);
  const waiting = nodes.flatMap((node) => node.slots).reduce((sum, slot) => sum + slot.waiting, 0);
  return [
    `${counted(load.requests, "request")} by this router, ${waiting} waiting on all nodes`,
    formatTable(["NODE", "SLOT", "STATE", "ACTIVE", "NEXT", "RUNNING", "WAITING", "OLDEST"], slots, width),
    models.length > 0 ? formatTable(["MODEL", "REQUESTS"], models, width) : "no requests are running",
    ...(accounts.length > 0 ? [formatTable(["ACCOUNT", "ID", "REQUESTS"], accounts, width)] : []),
  ].join("\n\n");
}
