/**
 * Makes the list of all slots with their histories from the items of the stream. Failed slots come first, then slots
 * whose engines failed. Otherwise the order is fixed.
 */
import type { ConsoleHistory, ConsoleNode } from "../../../../src/surface/contract/console.ts";
import type { Live } from "../live.ts";

export interface Lane {
  readonly key: string;
  readonly node: ConsoleNode;
  readonly slot: ConsoleNode["slots"][number];
  readonly history: ConsoleHistory | undefined;
  /** `Date.now()` at the arrival of the slot's state. */
  readonly atMs: number;
}

export function lanesOf(items: Live<"slots">["items"]): readonly Lane[] {
  const lanes: Lane[] = [];
  for (const { value, atMs } of items?.values() ?? []) {
    if (!("node" in value)) continue;
    const { node } = value;
    for (const slot of node.slots) {
      const past = items?.get(`history ${node.name}/${slot.name}`)?.value;
      const history = past && "history" in past ? past.history : undefined;
      lanes.push({ key: `${node.name}/${slot.name}`, node, slot, history, atMs });
    }
  }
  const rank = ({ slot }: Lane) => (slot.state === "failed" ? 0 : slot.failures.length > 0 ? 1 : 2);
  return lanes.toSorted((a, b) => rank(a) - rank(b) || a.key.localeCompare(b.key));
}
