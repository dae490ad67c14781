/**
 * Strategies of placement: the production strategy, strategies to compare it with, and the production strategy without
 * one of its parts.
 */
import { hash } from "node:crypto";
import type { NodeId } from "@weiche/shared/ids.ts";
import { SlotState, type NodeView } from "@weiche/router/src/nodes/node-view.ts";
import { place, type Placed, type Placement, type PlacementRequest } from "@weiche/router/src/nodes/placement.ts";

/**
 * Chooses among nodes with one slot each. `nowMs` is monotonic, `random` is in [0, 1), and `exclude` contains the nodes
 * tried already.
 */
export type Strategy = (
  request: PlacementRequest,
  nodes: readonly NodeView[],
  nowMs: number,
  random: () => number,
  exclude?: ReadonlySet<NodeId>,
) => Placement;

export const anyNode: Strategy = (_request, nodes, _nowMs, random) => placedOn(pick(nodes, random));

export const leastReported: Strategy = (_request, nodes, _nowMs, random) => leastOf(nodes, reportedOn, random);

/** Counts its own requests twice once a report contains them. */
export const bestOfTwo: Strategy = (_request, nodes, _nowMs, random) => {
  const first = pick(nodes, random);
  const others = nodes.filter((node) => node !== first);
  return leastOf([first, pick(others, random)], (node) => reportedOn(node) + node.slots[0]!.inFlight, random);
};

/** Counts own requests in flight, and a share of the load of other routers. */
export function ownAnd(shareOfOthers: number): Strategy {
  const load = (node: NodeView) => node.slots[0]!.inFlight + shareOfOthers * othersOn(node);
  return (_request, nodes, _nowMs, random) => leastOf(nodes, load, random);
}

/** The production strategy without the count of the router's own requests. */
export const withoutOwn: Strategy = (request, nodes, nowMs, random) => {
  const forgotten = nodes.map(({ node, reachable, reportedAtMs, admitting, maintenance, slots }) => {
    const ownless = slots.map((slot) => ({ ...slot, inFlight: 0 }));
    return { node, reachable, reportedAtMs, admitting, maintenance, slots: ownless };
  });
  return place(request, forgotten, nowMs, random);
};

/** The production strategy without memory of attempts' outcomes. */
export const forgetful: Strategy = (request, nodes, nowMs, random, exclude) => {
  const forgotten = nodes.map(({ node, reachable, reportedAtMs, admitting, maintenance, slots }) => {
    const innocent = slots.map((slot) => ({ ...slot, troubles: undefined }));
    return { node, reachable, reportedAtMs, admitting, maintenance, slots: innocent };
  });
  return place(request, forgotten, nowMs, random, exclude);
};

/** The production strategy without pauses between the trials of a slot. */
export const impatient: Strategy = (request, nodes, nowMs, random, exclude) => {
  const due = nodes.map(({ node, reachable, reportedAtMs, admitting, maintenance, slots }) => {
    const tried = slots.map((slot) => ({
      ...slot,
      troubles: new Map(slot.troubles?.entries().map(([model, trouble]) => [model, { ...trouble, tryAtMs: 0 }])),
    }));
    return { node, reachable, reportedAtMs, admitting, maintenance, slots: tried };
  });
  return place(request, due, nowMs, random, exclude);
};

/** The production strategy that never tries a slot again that was in trouble. */
export const unforgiving: Strategy = (request, nodes, nowMs, random, exclude) => {
  const closed = nodes.map(({ node, reachable, reportedAtMs, admitting, maintenance, slots }) => {
    const shut = slots.map((slot) => ({
      ...slot,
      troubles: new Map(slot.troubles?.entries().map(([model, trouble]) => [model, { ...trouble, tryAtMs: Infinity }])),
    }));
    return { node, reachable, reportedAtMs, admitting, maintenance, slots: shut };
  });
  return place(request, closed, nowMs, random, exclude);
};

/** The production strategy that trusts each report until the next. */
export const trusting: Strategy = (request, nodes, nowMs, random) => {
  const fresh = nodes.map(({ node, reachable, admitting, maintenance, slots }) => {
    return { node, reachable, admitting, maintenance, slots, reportedAtMs: nowMs };
  });
  return place(request, fresh, nowMs, random);
};

/** Sends a conversation to the first node in its own order whose load is below 1.25 times the mean. */
export const firstBelow: Strategy = (request, nodes, nowMs, random) => {
  const { affinityKey } = request;
  if (affinityKey === undefined) return place(request, nodes, nowMs, random);
  const load = (node: NodeView) => node.slots[0]!.inFlight + othersOn(node) / 4;
  const bound = (1.25 * (nodes.reduce((sum, node) => sum + load(node), 0) + 1)) / nodes.length;
  const below = nodes.filter((node) => load(node) < bound);
  const order = new Map(below.map((node) => [node, hash("md5", `${affinityKey} ${node.node}`)]));
  return placedOn(below.reduce((first, node) => (order.get(node)! < order.get(first)! ? node : first)));
};

/** The production strategy that may start an engine in any slot while no engine is known. */
export const anyStart: Strategy = (request, nodes, nowMs, random) => {
  const isEmpty = nodes.every(({ slots }) => slots[0]!.state === SlotState.EMPTY);
  return isEmpty ? placedOn(pick(nodes, random)) : place(request, nodes, nowMs, random);
};

/** Each router sends a conversation to its own previous choice, and knows no choice of other routers. */
export function ownAffinity(): Strategy {
  const homes = new Map<string, NodeId>();
  return (request, nodes, nowMs, random) => {
    const { affinityKey = "", model } = request;
    const home = nodes.find(({ node }) => node === homes.get(affinityKey));
    if (home) return placedOn(home);
    const placed = place({ model }, nodes, nowMs, random);
    if ("node" in placed) homes.set(affinityKey, placed.node);
    return placed;
  };
}

function reportedOn({ slots: [slot] }: NodeView): number {
  return slot!.running + slot!.waiting;
}

function othersOn(node: NodeView): number {
  const { inFlight, runningOfRouter } = node.slots[0]!;
  return Math.max(0, reportedOn(node) - Math.max(inFlight, runningOfRouter));
}

function leastOf(nodes: readonly NodeView[], load: (node: NodeView) => number, random: () => number): Placed {
  const least = Math.min(...nodes.map(load));
  return placedOn(
    pick(
      nodes.filter((node) => load(node) === least),
      random,
    ),
  );
}

function pick<Item>(items: readonly Item[], random: () => number): Item {
  return items[Math.floor(random() * items.length)]!;
}

function placedOn({ node, slots }: NodeView): Placed {
  return { node, slot: slots[0]!.name };
}
