import { describe, expect, test } from "vitest";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { modelState } from "./model-state.ts";
import type { NodeView, SlotView } from "./node-view.ts";

const [mine, other] = [asId<ModelId>("mine"), asId<ModelId>("other")];

function slot(more: Partial<SlotView>): SlotView {
  return {
    name: asId("a"),
    models: [mine, other],
    kind: "empty",
    running: 0,
    runningOfRouter: 0,
    inFlight: 0,
    waiting: 0,
    waitingByModel: new Map(),
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

const active = { kind: "active", active: mine } as const;

describe("a model is", () => {
  test.each([
    ["active on an active slot", [node([active])], "active"],
    ["active on a slot that still takes it", [node([{ kind: "draining-open", active: mine, next: other }])], "active"],
    ["active if one of several nodes serves it", [node([{}]), node([active])], "active"],
    ["switching while its engine starts", [node([{ kind: "starting", active: mine }])], "switching"],
    [
      "switching while another model drains for it",
      [node([{ kind: "draining-closed", active: other, next: mine }])],
      "switching",
    ],
    [
      "switching while somebody waits for it",
      [node([{ kind: "active", active: other, waitingByModel: new Map([[mine, 1]]) }])],
      "switching",
    ],
    ["asleep on an empty slot", [node([{}])], "asleep"],
    ["asleep behind another model", [node([{ kind: "active", active: other }])], "asleep"],
    [
      "asleep where it was refused a moment ago",
      [node([{ kind: "draining-closed", active: mine, next: other }])],
      "asleep",
    ],
    [
      "asleep where a start failed and may be tried again",
      [node([{ kind: "failed", active: mine, retryInMs: 0 }])],
      "asleep",
    ],
    [
      "unavailable while every slot recovers from a failed start",
      [node([{ kind: "failed", retryInMs: 900 }])],
      "unavailable",
      "no-node",
    ],
    ["unavailable without a node", [], "unavailable", "no-node"],
    ["unavailable where no slot has it", [node([{ models: [other] }])], "unavailable", "no-node"],
    ["unavailable on a node that cannot be reached", [node([active], { reachable: false })], "unavailable", "no-node"],
    ["unavailable on a node that takes nothing", [node([active], { admitting: false })], "unavailable", "no-node"],
    ["in maintenance with its only node", [node([active], { maintenance: true })], "unavailable", "maintenance"],
    [
      "asleep with one node in maintenance and another there",
      [node([active], { maintenance: true }), node([{}])],
      "asleep",
    ],
  ] as const)("%s", (_name, nodes, state, why?: string) => {
    expect(modelState(mine, nodes)).toEqual(why ? { state, why } : { state });
  });
});
