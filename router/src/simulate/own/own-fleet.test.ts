import { expect, test } from "vitest";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { SlotState, type PastSwitch, type SlotView } from "../../nodes/node-view.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import { Histogram } from "../engine/histogram.ts";
import { Measured } from "../engine/measured.ts";
import { Simulation } from "../engine/simulation.ts";
import type { LoadRequest } from "../load.ts";
import { ownFleet } from "./own-fleet.ts";
import { reportOf } from "./own-report.ts";
import type { ModelUsage } from "./own-usage.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => asId<ModelId>(name)) as [ModelId, ModelId, ModelId];
const gpu = { index: 0, memoryTotalBytes: 80n, memoryUsedBytes: 1n };

function slotView(name: string, models: readonly ModelId[], more: Partial<SlotView> = {}): SlotView {
  return {
    ...{ name: asId<SlotName>(name), models, state: SlotState.ACTIVE, activeModel: models[0]!, maxConcurrent: 4 },
    ...{ running: 0, runningOfRouter: 0, inFlight: 0, unread: 0, waiting: 0, waiters: [], stateAgeMs: 0 },
    ...more,
  };
}

function detail(name: string, slots: readonly SlotView[], more: Partial<NodeDetail> = {}): NodeDetail {
  const node = asId<NodeId>(name);
  return {
    view: { node, reachable: true, reportedAtMs: 0, admitting: true, maintenance: false, slots },
    hello: { node, bootId: "1", agentVersion: "1", slots: [] },
    ...{ linked: true, dataConnections: 1, linkedAtMs: 0, histories: new Map(), failures: new Map() },
    report: { slots: [], maintenance: false, admitting: true, host: { gpus: [gpu, { ...gpu, index: 1 }] } },
    ...more,
  };
}

function past(model: string, fromModel: string, more: Partial<PastSwitch> = {}): PastSwitch {
  const parts = { stopMs: 800, memoryMs: 200, startMs: 2_800, probeMs: 200 };
  return { model, fromModel, failed: false, tookMs: 9_000, endedAtMs: 0, ...parts, ...more };
}

function usageOf(msPerToken: number): ModelUsage {
  const histogram = new Histogram();
  histogram.add(msPerToken);
  return { requests: 1, tokens: 100, credits: 100_000n, msPerToken: histogram };
}

test("the fleet has the linked nodes' slots, with what switches and answers have measured and named defaults for the rest", () => {
  const histories = new Map([[asId<SlotName>("x"), [past("a", "b"), past("b", "a", { failed: true })]]]);
  const shared = slotView("y", [b, c], { engines: [{ models: [b, c] }], activeModel: c });
  const fleet = ownFleet(
    [
      detail("gpu-1", [slotView("x", [a, b]), shared], { histories }),
      detail("gpu-2", [slotView("x", [a])], { linked: false }),
    ],
    new Map([["a", usageOf(31)]]),
  )!;
  expect(
    fleet.nodes.map(({ name, slots }) => [
      name,
      ...slots.map((slot) => [slot.awake, slot.engines.map(({ model }) => model)]),
    ]),
  ).toEqual([["gpu-1", ["a", ["a", "b"]], ["b", ["b"]]]]);
  expect(fleet.gpus).toEqual([1, 1]);
  expect(Object.fromEntries(fleet.servedAs)).toEqual({ a: "a", b: "b", c: "b" });
  const [engineOfA, engineOfB] = fleet.nodes[0]!.slots[0]!.engines;
  expect(engineOfA).toMatchObject({ wakeMs: 3_000, startMs: 3_000, places: 4, step: { perRunningMs: 0 } });
  expect(engineOfA!.step.baseMs).toBeCloseTo(31, 0);
  expect(engineOfB).toMatchObject({ stopMs: 1_000, startMs: 60_000, wakeMs: undefined });
  const names = (told: typeof fleet.measured) => told.map(({ path, models }) => `${path} ${models.join()}`);
  expect(names(fleet.measured)).toEqual(["startSeconds a", "step.baseMs a", "places a", "stopSeconds b"]);
  expect(names(fleet.assumed)).toContain("startSeconds b");
  expect(names(fleet.assumed)).toContain("rules.minResidencySeconds ");
  expect(names(fleet.assumed)).not.toContain("startSeconds a");
});

test("a fleet without a linked node is none", () => {
  expect(ownFleet([detail("gpu-1", [slotView("x", [a])], { linked: false })], new Map())).toBeUndefined();
});

test("the slot in which requests wait longest is named first, and credits are those of the tokens that it served", () => {
  const { nodes, retryMs, gpus } = ownFleet([detail("gpu-1", [slotView("x", [a]), slotView("y", [b])])], new Map())!;
  const load = Array.from({ length: 40 }, (_, index): LoadRequest => {
    return {
      atMs: index * 1_000,
      account: "one",
      model: index % 8 === 0 ? "b" : "a",
      inputTokens: 400,
      outputTokens: 600,
    };
  });
  const simulation = new Simulation({
    ...{ seed: 1, load, nodes, retryMs, durationMs: 40_000, routers: 1, newsMs: 1, isFair: true },
  });
  while (simulation.advance(10_000));
  simulation.end();
  const measured = new Measured();
  measured.add(simulation);
  const report = reportOf(simulation, measured, {
    gpus,
    perToken: new Map([
      ["a", 1_000],
      ["b", 3_000],
    ]),
  });
  expect(report.slots.map(({ slot, waitShare }) => [slot, waitShare])).toEqual([
    ["x", 1],
    ["y", 0],
  ]);
  expect(report.isWaiting).toBe(true);
  const hours = measured.totalMs / 3_600_000;
  expect(report.slots.map(({ creditsPerGpuHour }) => Math.round(creditsPerGpuHour * hours))).toEqual([35_000, 15_000]);
  expect(report.creditsPerGpuHour * hours * report.gpus).toBeCloseTo(50_000, 5);
});
