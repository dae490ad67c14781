/** Nodes and slots as placement sees them. */
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { SlotState, type NodeView, type SlotView } from "../../src/nodes/node-view.ts";
import { place, type PlacementRequest } from "../../src/nodes/placement.ts";

export const [a, b, c] = ["a", "b", "c"].map((name) => asId<ModelId>(name)) as [ModelId, ModelId, ModelId];
export const nowMs = 1_000_000;

export type SlotGiven = Partial<Omit<SlotView, "waiters">> & { readonly waiters?: Readonly<Record<string, number>> };

export function slotView({ waiters = {}, ...given }: SlotGiven): SlotView {
  const list = Object.entries(waiters).map(([model, waiting]) => ({ model, waiting }));
  return {
    name: asId<SlotName>("s"),
    models: [a, b, c],
    state: SlotState.EMPTY,
    running: 0,
    runningOfRouter: 0,
    inFlight: 0,
    unread: 0,
    waiting: list.reduce((sum, { waiting }) => sum + waiting, 0),
    waiters: list,
    stateAgeMs: 0,
    ...given,
  };
}

export function nodeView(name: string, slots: readonly SlotView[], given: Partial<NodeView> = {}): NodeView {
  const node = asId<NodeId>(name);
  return { node, reachable: true, reportedAtMs: nowMs, admitting: true, maintenance: false, slots, ...given };
}

export const one = (name: string, given: SlotGiven, node: Partial<NodeView> = {}) =>
  nodeView(name, [slotView(given)], node);
export const active = (name: string, given: SlotGiven = {}, node: Partial<NodeView> = {}) =>
  one(name, { state: SlotState.ACTIVE, activeModel: a, maxConcurrent: 8, ...given }, node);

export function chosen(
  nodes: readonly NodeView[],
  request: Partial<PlacementRequest> = {},
  exclude: readonly string[] = [],
) {
  const excluded = new Set(exclude.map((name) => asId<NodeId>(name)));
  const placement = place({ model: a, ...request }, nodes, nowMs, () => 0, excluded);
  return "refused" in placement ? placement.refused : placement.node;
}
