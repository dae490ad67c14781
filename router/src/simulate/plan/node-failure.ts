/** Failures of nodes that a user asks about, such as `node node-2 fails at 10:00 for 2h`. */
import { StartError } from "@weiche/shared/files/start-error.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { nearest } from "@weiche/shared/files/config-file.ts";
import type { SimulationOptions } from "../engine/simulation.ts";
import { timeOfDay } from "../loads/changes.ts";

export interface NodeFailure {
  /** The text as the user wrote it. */
  readonly text: string;
  readonly node: NodeId;
  /** Milliseconds after midnight. The node fails at this time of the first day. */
  readonly timeMs: number;
  /** How long the node is away. Undefined if it does not come back. */
  readonly forMs?: number;
}

/** The parts of a plan that determine the names of its nodes. */
interface Sized {
  readonly fleet: readonly { readonly slots?: number }[];
  readonly slotsPerNode: number;
}

const form = /^node (\S+) fails at (\d\d?:\d\d)(?: for (\d+(?:\.\d+)?) ?(s|m|h))?$/;
const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const awayMsMin = 1_000;
const example = 'write it like "node node-2 fails at 10:00" or "node node-2 fails at 10:00 for 2h"';

export function isAboutNode(text: string): boolean {
  return text.trim().startsWith("node ");
}

/** Throws `StartError` with what to correct. */
export function parseNodeFailure(text: string, plan: Sized): NodeFailure {
  const [, name, time, length, unit] = form.exec(text.trim()) ?? [];
  if (name === undefined) throw new StartError(`cannot read "${text}": ${example}`);
  const node = asId<NodeId>(name);
  const nodes = nodesOf(plan);
  if (!nodes.includes(name)) {
    const near = nearest(name, nodes);
    const known = nodes.length === 1 ? "only node-1" : `node-1 to node-${nodes.length}`;
    const why = isSearched(plan) ? ", because the number of slots is searched" : "";
    throw new StartError(
      `"${text}" names "${name}"; the plan has ${known} for certain${why}${near ? `. Did you mean "${near}"?` : ""}`,
    );
  }
  const timeMs = timeOfDay(text, time!);
  if (length === undefined) return { text, node, timeMs };
  const forMs = Number(length) * unitMs[unit!]!;
  if (forMs < awayMsMin) throw new StartError(`"${text}": a node that fails is away for at least 1 s`);
  return { text, node, timeMs, forMs };
}

function isSearched({ fleet }: Sized): boolean {
  return fleet.some(({ slots }) => slots === undefined);
}

/** The nodes that the plan has with any number of slots in the groups that are searched. */
function nodesOf(plan: Sized): readonly string[] {
  const slots = plan.fleet.reduce((sum, group) => sum + (group.slots ?? 1), 0);
  const count = isSearched(plan) ? 1 : Math.ceil(slots / plan.slotsPerNode);
  return Array.from({ length: count }, (_, index) => `node-${index + 1}`);
}

/** Throws `StartError` if a node would fail after the end of the load. */
export function checkFailures(
  { failures }: { readonly failures: readonly NodeFailure[] },
  { startsAtMs, durationMs }: { readonly startsAtMs: number; readonly durationMs: number },
): void {
  for (const [index, { atMs }] of failuresOf(failures, startsAtMs).entries())
    if (atMs >= durationMs)
      throw new StartError(`"${failures[index]!.text}": the load ends before, ${hoursOf(durationMs)} after its begin`);
}

function hoursOf(ms: number): string {
  return `${Number((ms / 3_600_000).toFixed(2))} h`;
}

/** `startsAtMs`: when the load begins, in milliseconds after midnight. */
export function failuresOf(
  failures: readonly NodeFailure[],
  startsAtMs: number,
): NonNullable<SimulationOptions["failures"]> {
  return failures.map(({ node, timeMs, forMs }) => {
    const atMs = (timeMs - startsAtMs + dayMs) % dayMs;
    return { node, atMs, ...(forMs !== undefined && { untilMs: atMs + forMs }) };
  });
}

const dayMs = 86_400_000;
