/**
 * Rules of placement among slots that several models share: the production rule, the previous one, and rules that were
 * tried.
 */
import type { ModelId } from "@weiche/shared/ids.ts";
import { SlotState, waitingFor, type NodeView, type SlotView } from "@weiche/router/src/nodes/node-view.ts";
import { place } from "@weiche/router/src/nodes/placement.ts";
import type { Strategy } from "../placement-strategies.ts";

/** The rule until decision 52. A slot that switches to another model has the same rank with and without waiters. */
const before: Strategy = (request, nodes, ...rest) =>
  place(
    request,
    changed(nodes, (slot) => (isOther(slot, request.model) ? withoutWaiters(slot, request.model) : slot)),
    ...rest,
  );

/** Among slots with other models, prefers a slot whose model is active elsewhere. */
const activeElsewhere: Strategy = (request, nodes, ...rest) => {
  const active = new Map<ModelId, number>();
  for (const { slots } of nodes)
    for (const { activeModel } of slots) if (activeModel) active.set(activeModel, (active.get(activeModel) ?? 0) + 1);
  const rank = (slot: SlotView) => (active.get(slot.activeModel!)! > 1 ? 0 : 1_000) + slot.running;
  return place(request, changed(nodes, displacedBy(rank, request.model)), ...rest);
};

/** Among slots with other models, prefers the slot whose model had the fewest requests in the last minutes. */
function leastAsked(): Strategy {
  const asked = new Map<ModelId, { count: number; atMs: number }>();
  const rateOf = (model: ModelId | undefined, nowMs: number) => {
    const { count, atMs } = asked.get(model!) ?? { count: 0, atMs: nowMs };
    return count * Math.exp((atMs - nowMs) / 300_000);
  };
  return (request, nodes, nowMs, ...rest) => {
    if (!rest[1]?.size) asked.set(request.model, { count: rateOf(request.model, nowMs) + 1, atMs: nowMs });
    const rank = (slot: SlotView) => 1 + rateOf(slot.activeModel, nowMs);
    return place(request, changed(nodes, displacedBy(rank, request.model)), nowMs, ...rest);
  };
}

/** Starts a second copy of a model when the demand exceeds its engines' places this many times. */
function secondCopyAt(times: number): Strategy {
  return (request, nodes, ...rest) => {
    const isCrowded = (slot: SlotView) =>
      slot.activeModel === request.model &&
      slot.state === SlotState.ACTIVE &&
      Math.max(slot.inFlight, slot.running + waitingFor(slot, request.model)) >= times * slot.maxConcurrent!;
    const others = nodes.filter(({ slots }) => !slots.some(isCrowded));
    const isCopied = others.some(({ slots }) => slots.some(({ activeModel }) => activeModel === request.model));
    return place(request, others.length === 0 || isCopied ? nodes : others, ...rest);
  };
}

/** Sends a long answer to no slot that another model waits for, if another slot can take it. */
const longAside: Strategy = (request, nodes, ...rest) => {
  const isWanted = (slot: SlotView) =>
    slot.state === SlotState.DRAINING_OPEN || slot.waiters.some(({ model }) => model !== request.model);
  const free = isLong(request) ? nodes.filter(({ slots }) => !slots.some(isWanted)) : [];
  return place(request, free.length > 0 ? free : nodes, ...rest);
};

/** Sends the long answers of a model to one of its slots. */
const longTogether: Strategy = (request, nodes, ...rest) =>
  place(isLong(request) ? { ...request, affinityKey: "long" } : request, nodes, ...rest);

export const fleetStrategies = {
  before: () => before,
  now: () => place,
  "displaced: active elsewhere": () => activeElsewhere,
  "displaced: asked for least": leastAsked,
  "second copy at 1.5 times the places": () => secondCopyAt(1.5),
} satisfies Readonly<Record<string, () => Strategy>>;

export const longStrategies = {
  now: () => place,
  "long answers aside": () => longAside,
  "long answers together": () => longTogether,
} satisfies Readonly<Record<string, () => Strategy>>;

/** A router knows at most `max_tokens`. The bench gives it the true length. */
function isLong(request: Parameters<Strategy>[0] & { readonly tokens?: number }): boolean {
  return (request.tokens ?? 0) >= 4_000;
}

function isOther({ state, activeModel, nextModel }: SlotView, model: ModelId): boolean {
  return state !== SlotState.ACTIVE && activeModel !== model && nextModel !== model;
}

function withoutWaiters(slot: SlotView, model: ModelId): SlotView {
  return { ...slot, waiters: slot.waiters.filter((waiter) => waiter.model !== model) };
}

/** The production rule displaces the slot with the fewest running requests. */
function displacedBy(rank: (slot: SlotView) => number, model: ModelId): (slot: SlotView) => SlotView {
  const isBusy = (slot: SlotView) =>
    slot.state === SlotState.ACTIVE && slot.activeModel !== model && slot.running > 0 && slot.waiting === 0;
  return (slot) => (isBusy(slot) ? { ...slot, running: rank(slot) } : slot);
}

function changed(nodes: readonly NodeView[], change: (slot: SlotView) => SlotView): readonly NodeView[] {
  return nodes.map(({ node, reachable, reportedAtMs, admitting, maintenance, slots }) => {
    return { node, reachable, reportedAtMs, admitting, maintenance, slots: slots.map(change) };
  });
}
