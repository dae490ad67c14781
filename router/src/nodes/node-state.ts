/** A node's state as a word, for people and metrics. */
import type { NodeDetail } from "./registry.ts";

/** `silent`: linked, but without a fresh report or a data connection. */
export const nodeStates = ["live", "not-admitting", "maintenance", "silent", "gone"] as const;
type NodeState = (typeof nodeStates)[number];

export function nodeState({ view, linked }: NodeDetail): NodeState {
  if (!linked) return "gone";
  if (!view.reachable) return "silent";
  if (view.maintenance) return "maintenance";
  return view.admitting ? "live" : "not-admitting";
}
