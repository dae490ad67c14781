/** Tables of nodes and models for people. */
import {
  diskTable,
  fileSystemTable,
  gpuTable,
  interfaceTable,
  machineLines,
} from "@weiche/shared/program/machine-text.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import { formatTable, shortened } from "@weiche/shared/program/table.ts";
import { inWords } from "@weiche/shared/program/duration.ts";
import { wrapped } from "./cli-text.ts";
import type { Answer } from "./client.ts";
import type { Scene } from "./watch.ts";

type Nodes = Answer<"listNodes">;
type Node = Answer<"showNode">;
type Failure = Node["slots"][number]["failures"][number];
type Models = Answer<"listCatalogue">;

/** A line for each slot. */
export function nodesText(nodes: Nodes, width?: number): string {
  if (nodes.length === 0) return "no node has linked yet";
  const rows = nodes.flatMap(({ name, state, slots }) =>
    slots.map((slot) => [
      ...[name, state, slot.name, slot.state, activeOf(slot), slot.next, slot.running, slot.waiting],
    ]),
  );
  const headers = ["NODE", "STATE", "SLOT", "SLOT STATE", "ACTIVE", "NEXT", "RUNNING", "WAITING"];
  const notes = nodes.flatMap(({ name, slots }) =>
    slots.flatMap((slot) => notesOf(slot).map((note) => noteText(`${name}/${slot.name}: ${note}`, width))),
  );
  return [formatTable(headers, rows, width), ...(notes.length > 0 ? ["", ...notes] : [])].join("\n");
}

/** Notes have lines of their own, because in a column they would be cut on most terminals. */
function noteText(note: string, width: number = Infinity): string {
  const lines = wrapped(plainText(note), "  ", width).split("\n");
  return lines.map((line) => shortened(line, width)).join("\n");
}

/** A line for each node and slot that changes. */
export function nodesScene(nodes: Nodes): Scene {
  const ofNode = (node: Nodes[number]) => [
    [node.name, node.state] as const,
    ...node.slots.map((slot) => [`${node.name}/${slot.name}`, slotLine(slot)] as const),
  ];
  return { value: nodes, text: (width) => nodesText(nodes, width), lines: new Map(nodes.flatMap(ofNode)) };
}

/** An engine may serve several models at the same time. */
export function activeOf({ activeModels }: Pick<Nodes[number]["slots"][number], "activeModels">): string | undefined {
  return activeModels.length > 0 ? activeModels.join(", ") : undefined;
}

function slotLine(slot: Nodes[number]["slots"][number]): string {
  const { state, next, failed, running, waiting } = slot;
  const models = [activeOf(slot) ?? failed, next && `next ${next}`].filter((part) => part !== undefined);
  const troubles = slot.troubles.map(({ model, kind }) => `, ${model} ${words[kind]}`);
  return `${[state, ...models].join(" ")}, ${running} running, ${waiting} waiting${troubles.join("")}`;
}

/** Describes a node: its slots, what failed engines printed, its host's load, and its machine if the agent reports it. */
export function nodeText(node: Node, width?: number): string {
  const { machine, reading, host } = node;
  const tables = [
    ...(reading ? [fileSystemTable(reading)] : []),
    ...(machine ? [gpuTable(machine, host?.gpus), diskTable(machine), interfaceTable(machine)] : []),
  ];
  return [
    nodesText([node], width),
    ...node.slots.flatMap(({ name, failures }) => failures.map((failure) => outputText(name, failure, width))),
    machineLines({ machine, reading, host }).join("\n"),
    ...tables.map(({ headers, rows }) => (rows.length > 0 ? formatTable(headers, rows, width) : "")),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** The last output lines of an engine that did not start. */
function outputText(slot: string, { model, lines }: Failure, width: number = Infinity): string {
  if (lines.length === 0) return "";
  const output = lines.map((line) => shortened(`  ${plainText(line)}`, width));
  return [`Last output of ${model ?? "an engine"} in slot ${slot}:`, ...output].join("\n");
}

const words = { failing: "fails", slow: "is slow" } as const;

/** Such as `model-a fails (80 %) for 75 s`. */
function notesOf(slot: Nodes[number]["slots"][number]): readonly string[] {
  const troubles = slot.troubles.map(
    ({ model, kind, share, seconds }) =>
      `${model} ${words[kind]} (${Math.round(share * 100)} %) for ${Math.round(seconds)} s`,
  );
  const waits = slot.estimates.map(
    ({ model, nextSeconds, lastSeconds }) =>
      `waiting for ${model}: the next for about ${Math.round(nextSeconds)} s, the last for about ${Math.round(lastSeconds)} s`,
  );
  const failures = slot.failures.map(failureText);
  return [failed(slot), ...failures, ...troubles, ...waits].filter((note) => note !== undefined);
}

/** Such as `model-a did not start 12.0 s ago: exit code 1: CUDA out of memory`. */
export function failureText({ model = "an engine", kind, reason, seconds }: Failure): string {
  const ago = `${inWords(seconds)} ago`;
  const what = {
    start: `${model} did not start ${ago}`,
    stop: `${model} did not stop ${ago}`,
    exit: `${model} ended by itself ${ago}`,
    suspected: `${model} was restarted ${ago}, because it seemed to hang or fail`,
    search: `engines of an earlier agent could not be searched ${ago}`,
  };
  return plainText(`${what[kind]}: ${reason}`);
}

function failed({ state, failed: model, retryInSeconds }: Nodes[number]["slots"][number]): string | undefined {
  if (state !== "failed") return undefined;
  const what = model === undefined ? "an engine could not be stopped" : `${model} failed`;
  return retryInSeconds === undefined ? what : `${what}, tried again in ${retryInSeconds.toFixed(1)} s`;
}

export function modelsText(models: Models, width?: number): string {
  const stateAt = ({ state, active, failure }: Models[number]["nodes"][number]) => {
    if (state !== "live") return state;
    if (active) return "active";
    return failure ? `failed ${inWords(failure.seconds)} ago` : "wakes on request";
  };
  const where = (nodes: Models[number]["nodes"]) => nodes.map((node) => `${node.name} (${stateAt(node)})`);
  const notes = models.flatMap(({ nodes }) =>
    nodes.flatMap(({ name, failure }) => (failure ? [noteText(`${name}: ${failureText(failure)}`, width)] : [])),
  );
  const table = formatTable(
    ["MODEL", "STATUS", "CATEGORY", "CONTEXT", "FACTOR", "NODES"],
    models.map((model) => [
      model.id,
      model.status,
      model.category,
      model.contextTokens,
      model.factor,
      where(model.nodes).join(", "),
    ]),
    width,
  );
  return [table, ...(notes.length > 0 ? ["", ...notes] : [])].join("\n");
}
