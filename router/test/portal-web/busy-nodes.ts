/** A server with two slots: some models are active, some asleep, and one has no server. For tests and screenshots. */
import { asId } from "@weiche/shared/ids.ts";
import { SlotState, type NodeView, type SlotView } from "../../src/nodes/node-view.ts";

function slot(name: string, active: string, models: readonly string[]): SlotView {
  return {
    name: asId(name),
    models: models.map((model) => asId(model)),
    state: SlotState.ACTIVE,
    activeModel: asId(active),
    running: 0,
    runningOfRouter: 0,
    inFlight: 0,
    unread: 0,
    waiting: 0,
    waiters: [],
    stateAgeMs: 60_000,
  };
}

export const busyNodes: readonly NodeView[] = [
  {
    node: asId("gpu-1"),
    reachable: true,
    reportedAtMs: 0,
    admitting: true,
    maintenance: false,
    slots: [
      slot("a", "general-4-31b", ["small-24b", "general-4-31b"]),
      slot("b", "coder-next", ["coder-next", "vl-embedding-2b"]),
    ],
  },
];
