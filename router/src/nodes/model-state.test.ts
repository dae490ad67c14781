import { describe, expect, test } from "vitest";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { modelState } from "./model-state.ts";
import { SlotState, type NodeView, type SlotView } from "./node-view.ts";

const [mine, other] = [asId<ModelId>("mine"), asId<ModelId>("other")];

function slot(more: Partial<SlotView>): SlotView {
  return {
    name: asId("a"),
    models: [mine, other],
    state: SlotState.EMPTY,
    running: 0,
    runningOfRouter: 0,
    inFlight: 0,
    unread: 0,
    waiting: 0,
    waiters: [],
    stateAgeMs: 0,
    ...more,
  };
}

function node(slots: readonly Partial<SlotView>[], more: Partial<NodeView> = {}): NodeView {
  return {
    node: asId("n"),
    reachable: true,
    reportedAtMs: 0,
    admitting: true,
    maintenance: false,
    slots: slots.map(slot),
    ...more,
  };
}

const active = { state: SlotState.ACTIVE, activeModel: mine } as const;

describe("a model is", () => {
  test.each([
    ["active on an active slot", [node([active])], "active"],
    [
      "active on a slot whose drain is still open",
      [node([{ state: SlotState.DRAINING_OPEN, activeModel: mine, nextModel: other }])],
      "active",
    ],
    ["active if one of several nodes serves it", [node([{}]), node([active])], "active"],
    ["switching while its engine starts", [node([{ state: SlotState.STARTING, activeModel: mine }])], "switching"],
    [
      "switching while another model drains for it",
      [node([{ state: SlotState.DRAINING_CLOSED, activeModel: other, nextModel: mine }])],
      "switching",
    ],
    [
      "switching while a request waits for it",
      [node([{ state: SlotState.ACTIVE, activeModel: other, waiters: [{ model: mine, waiting: 1 }] }])],
      "switching",
    ],
    ["asleep on an empty slot", [node([{}])], "asleep"],
    ["asleep behind another model", [node([{ state: SlotState.ACTIVE, activeModel: other }])], "asleep"],
    [
      "asleep on a slot that refused it a moment ago",
      [node([{ state: SlotState.DRAINING_CLOSED, activeModel: mine, nextModel: other }])],
      "asleep",
    ],
    [
      "asleep on a slot whose start failed and may be tried again",
      [node([{ state: SlotState.FAILED, activeModel: mine, retryInMs: 0 }])],
      "asleep",
    ],
    [
      "unavailable while every slot recovers from a failed start",
      [node([{ state: SlotState.FAILED, retryInMs: 900 }])],
      "unavailable",
      "no-node",
    ],
    ["unavailable without a node", [], "unavailable", "no-node"],
    ["unavailable if no slot has it", [node([{ models: [other] }])], "unavailable", "no-node"],
    ["unavailable on a node that cannot be reached", [node([active], { reachable: false })], "unavailable", "no-node"],
    ["unavailable on a node that admits no requests", [node([active], { admitting: false })], "unavailable", "no-node"],
    [
      "unavailable while its only node is in maintenance",
      [node([active], { maintenance: true })],
      "unavailable",
      "maintenance",
    ],
    ["asleep if one of its two nodes is in maintenance", [node([active], { maintenance: true }), node([{}])], "asleep"],
  ] as const)("%s", (_name, nodes, state, why?: string) => {
    expect(modelState(mine, nodes)).toEqual(why ? { state, why } : { state });
  });
});
