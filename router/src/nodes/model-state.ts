/** The state of a model over all nodes: whether the service answers a request for it at once, later, or not. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { isServedBy, SlotState, waitingFor, type NodeView, type SlotView } from "./node-view.ts";

/**
 * `active`: a slot serves the model. `switching`: a slot starts the model or switches to it next. `asleep`: the first
 * request starts the model. `unavailable`: the router refuses requests for the model.
 */
type ModelState = "active" | "switching" | "asleep" | "unavailable";

export interface ModelLiveness {
  readonly state: ModelState;
  /** Set only for `unavailable`. */
  readonly why?: "maintenance" | "no-node";
}

export function modelState(model: ModelId, nodes: readonly NodeView[]): ModelLiveness {
  const hosts = nodes.filter(({ reachable, slots }) => reachable && slots.some(({ models }) => models.includes(model)));
  const slots = hosts
    .filter(({ maintenance, admitting }) => admitting && !maintenance)
    .flatMap((host) => host.slots.filter(({ models }) => models.includes(model)));
  if (slots.length === 0)
    return { state: "unavailable", why: hosts.some(({ maintenance }) => maintenance) ? "maintenance" : "no-node" };
  if (slots.some((slot) => serves(slot, model))) return { state: "active" };
  if (slots.some((slot) => isComing(slot, model))) return { state: "switching" };
  if (slots.every(({ state, retryInMs = 0 }) => state === SlotState.FAILED && retryInMs > 0))
    return { state: "unavailable", why: "no-node" };
  return { state: "asleep" };
}

/** Returns whether the slot serves a request for the model at once. */
export function serves(slot: Pick<SlotView, "activeModel" | "state" | "engines">, model: ModelId): boolean {
  const { activeModel, state } = slot;
  return isServedBy(slot, activeModel, model) && (state === SlotState.ACTIVE || state === SlotState.DRAINING_OPEN);
}

function isComing(slot: SlotView, model: ModelId): boolean {
  const { state, activeModel, nextModel } = slot;
  const isStarting = state === SlotState.STARTING && isServedBy(slot, activeModel, model);
  return isStarting || isServedBy(slot, nextModel, model) || waitingFor(slot, model) > 0;
}
