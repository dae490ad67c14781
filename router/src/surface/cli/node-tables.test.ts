/** What `weiche nodes` shows of a slot that failed. */
import { expect, test } from "vitest";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import { SlotState, type SlotView } from "../../nodes/node-view.ts";
import { nodesText } from "./node-tables.ts";
import { viewNode } from "../routes/nodes.ts";

const model = asId<ModelId>("model-a");

function shown(slot: Partial<SlotView>) {
  const view = {
    ...{ node: asId<NodeId>("gpu-1"), reachable: true, reportedAtMs: 1_000, admitting: true, maintenance: false },
    slots: [
      {
        ...{
          name: asId<SlotName>("a"),
          models: [model],
          state: SlotState.ACTIVE,
          running: 0,
          runningOfRouter: 0,
          inFlight: 0,
        },
        ...{ waiting: 0, waiters: [], stateAgeMs: 0 },
        ...slot,
      } satisfies SlotView,
    ],
  };
  const hello = { node: view.node, bootId: "b", agentVersion: "1", slots: [] };
  const detail = { view, hello, linked: true, dataSessions: 1, report: undefined } as unknown as NodeDetail;
  const nodes = JSON.parse(JSON.stringify([viewNode(detail, 1_600)])) as [ReturnType<typeof viewNode>];
  return { slot: nodes[0]!.slots[0]!, row: nodesText(nodes).split("\n").at(-1)! };
}

test("a slot that serves shows its model", () => {
  const { slot, row } = shown({ state: SlotState.ACTIVE, activeModel: model });
  expect(slot).toMatchObject({ state: "active", active: "model-a" });
  expect(row).toMatch(/^gpu-1 +live +a +active +model-a +– +0 +0 +–$/);
});

test("a failed slot has no active model, but what failed and when it is tried again, counted from now", () => {
  const { slot, row } = shown({ state: SlotState.FAILED, activeModel: model, retryInMs: 8_000 });
  expect(slot).toMatchObject({ state: "failed", failed: "model-a", retryInSeconds: 7.4 });
  expect(slot.active).toBeUndefined();
  expect(row).toMatch(/^gpu-1 +live +a +failed +– +– +0 +0 +model-a failed, tried again in 7\.4 s$/);
});

test("a slot of which it is not known what is awake says why it rests", () => {
  expect(shown({ state: SlotState.FAILED, retryInMs: 100 }).row).toMatch(
    /an engine could not be stopped, tried again in 0\.0 s$/,
  );
});

test("no name that a node reports adds a row or steers the terminal", () => {
  const hostile = "x\r\ngpu-2  live\u001b[2J\u009b1A\u2028\u202ey";
  const { row } = shown({
    state: SlotState.ACTIVE,
    activeModel: asId<ModelId>(hostile),
    name: asId<SlotName>(hostile),
  });
  expect(row).toMatch(/^gpu-1 /);
  expect(row).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
});
