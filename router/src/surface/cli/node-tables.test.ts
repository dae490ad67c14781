/** `weiche nodes` shows why a slot failed, and `weiche nodes show` describes the machine. */
import { expect, test } from "vitest";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import { SlotState, type EngineFailure, type SlotView } from "../../nodes/node-view.ts";
import type { Trouble } from "../../nodes/outcomes/standing.ts";
import { modelsText, nodesText, nodeText } from "./node-tables.ts";
import { viewMachine } from "../routes/node-machine.ts";
import { viewNode } from "../routes/nodes.ts";

const model = asId<ModelId>("model-a");

function shown(slot: Partial<SlotView>, width?: number, failed: readonly EngineFailure[] = []) {
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
          unread: 0,
        },
        ...{ waiting: 0, waiters: [], stateAgeMs: 0 },
        ...slot,
      } satisfies SlotView,
    ],
  };
  const hello = { node: view.node, bootId: "b", agentVersion: "1", slots: [] };
  const failures = new Map([[view.slots[0]!.name, failed]]);
  const detail = {
    view,
    hello,
    linked: true,
    dataConnections: 1,
    report: undefined,
    failures,
  } as unknown as NodeDetail;
  const nodes = JSON.parse(JSON.stringify([viewNode(detail, 1_600)])) as [ReturnType<typeof viewNode>];
  const [, , row, , ...notes] = nodesText(nodes, width).split("\n");
  return { node: nodes[0], slot: nodes[0].slots[0]!, row: row!, notes };
}

test("a slot that serves shows its model", () => {
  const { slot, row } = shown({ state: SlotState.ACTIVE, activeModel: model });
  expect(slot).toMatchObject({ state: "active", active: "model-a" });
  expect(row).toMatch(/^gpu-1 +live +a +active +model-a +– +0 +0$/);
});

test("a failed slot shows no active model, but the failed model and the time until the next try", () => {
  const { slot, row, notes } = shown({ state: SlotState.FAILED, activeModel: model, retryInMs: 8_000 });
  expect(slot).toMatchObject({ state: "failed", failed: "model-a", retryInSeconds: 7.4 });
  expect(slot.active).toBeUndefined();
  expect(row).toMatch(/^gpu-1 +live +a +failed +– +– +0 +0$/);
  expect(notes).toEqual(["gpu-1/a: model-a failed, tried again in 7.4 s"]);
});

test("a slot whose requests fail or are slow shows the model, how many of the latest requests, and since when", () => {
  const trouble = { share: 0.803, sinceMs: -73_400, tryAtMs: 0, changedAtMs: 0 };
  const other = asId<ModelId>("model-b");
  const troubles = new Map<ModelId, Trouble>([
    [model, { ...trouble, kind: "failing" }],
    [other, { ...trouble, kind: "slow", share: 1 }],
  ]);
  const { slot, notes } = shown({ state: SlotState.ACTIVE, activeModel: model, troubles });
  expect(slot.troubles).toEqual([
    { model: "model-a", kind: "failing", share: 0.8, seconds: 75 },
    { model: "model-b", kind: "slow", share: 1, seconds: 75 },
  ]);
  expect(notes).toEqual(["gpu-1/a: model-a fails (80 %) for 75 s", "gpu-1/a: model-b is slow (100 %) for 75 s"]);
});

test("a slot in which the awake engine is unknown shows why it is at rest", () => {
  expect(shown({ state: SlotState.FAILED, retryInMs: 100 }).notes).toEqual([
    "gpu-1/a: an engine could not be stopped, tried again in 0.0 s",
  ]);
});

test("on a narrow terminal the wait for a model is whole, in lines of its own", () => {
  const long = asId<ModelId>("a-model-with-a-name-of-many-words");
  const waiters = [{ model: long, waiting: 4, nextServedMs: 20_600, lastServedMs: 134_600 }];
  const { row, notes } = shown({ activeModel: model, nextModel: long, waiting: 4, waiters }, 60);
  expect(row).toMatch(/^gpu-1 +live +a +active +model… +a-mod… +0 +4$/);
  expect(notes).toEqual([
    "gpu-1/a: waiting for a-model-with-a-name-of-many-words: the",
    "  next for about 20 s, the last for about 134 s",
  ]);
});

const failure = (more: Partial<EngineFailure> = {}): EngineFailure => ({
  ...{ number: 1n, atMs: 1_000, model, kind: "start", reason: "exit code 1: CUDA error: out of memory" },
  lines: ["loading weights", "CUDA error: out of memory"],
  ...more,
});

test("a slot shows why its engines failed, also while it is empty", () => {
  const { slot, notes } = shown({ state: SlotState.EMPTY }, undefined, [
    failure(),
    failure({ model: undefined, kind: "search", reason: "EACCES", lines: [] }),
  ]);
  expect(notes).toEqual([
    "gpu-1/a: model-a did not start 0.6 s ago: exit code 1: CUDA error: out of memory",
    "gpu-1/a: engines of an earlier agent could not be searched 0.6 s ago: EACCES",
  ]);
  expect(slot.failures[0]).toMatchObject({ model, kind: "start", seconds: 0.6 });
});

test("weiche nodes show prints the last output lines of an engine that did not start", () => {
  const { node } = shown({ state: SlotState.EMPTY }, undefined, [failure({ lines: ["a", "b\u001b[2J"] })]);
  expect(nodeText(node)).toContain("Last output of model-a in slot a:\n  a\n  b?[2J");
});

test.each([
  [{ active: true }, "gpu-1 (active)"],
  [{ active: false }, "gpu-1 (failed 12.0 s ago)\n\ngpu-1: model-a did not start 12.0 s ago: exit code 1"],
])("weiche models shows a model whose engine failed as failed, unless a slot serves it: %j", (state, text) => {
  const failed = { model, kind: "start", reason: "exit code 1", lines: [], seconds: 12 } as const;
  const nodes = [{ name: "gpu-1", state: "live", failure: failed, ...state } as const];
  const facts = { id: model, status: "Verfügbar", category: "language", contextTokens: 1, factor: "1" } as const;
  expect(modelsText([{ ...facts, nodes }])).toContain(text);
});

test("no name that a node reports adds a row or steers the terminal [E9]", () => {
  const hostile = "x\r\ngpu-2  live\u001b[2J\u009b1A\u2028\u202ey";
  const { row, notes } = shown({
    ...{ state: SlotState.FAILED, activeModel: asId<ModelId>(hostile), name: asId<SlotName>(hostile) },
    retryInMs: 8_000,
  });
  expect(row).toMatch(/^gpu-1 /);
  expect(notes).toEqual([expect.stringMatching(/^gpu-1\/x.* failed, tried again in 7\.4 s$/)]);
  for (const line of [row, ...notes]) expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
});

const idle = viewNode(
  {
    view: {
      node: asId<NodeId>("gpu-1"),
      reachable: true,
      reportedAtMs: 0,
      admitting: true,
      maintenance: false,
      slots: [],
    },
    hello: { node: asId<NodeId>("gpu-1"), bootId: "b", agentVersion: "1", slots: [] },
    ...{ linked: true, dataConnections: 1, report: undefined, linkedAtMs: undefined, histories: new Map() },
    failures: new Map(),
  },
  0,
);

test("a node shows its machine, with the names and the use of its GPUs", () => {
  const machineReading = {
    ...{ loadAverage1: 1, loadAverage5: 2, loadAverage15: 3, swapTotalBytes: 2n ** 33n, swapUsedBytes: 0n },
    fileSystems: [{ mount: "/models", holds: ["models"], sizeBytes: 2n ** 40n, availableBytes: 2n ** 38n }],
    temperatures: [],
  };
  const machine = {
    ...{ kernel: "6.8.0", memoryModules: [], disks: [{ name: "nvme0n1", sizeBytes: 2n ** 40n, kind: "SSD" }] },
    networkInterfaces: [{ name: "eth0", up: true, bitsPerSecond: 25_000_000_000n }],
    gpus: [{ busAddress: "0000:3b:00.0", index: 0, vendor: "NVIDIA", name: "H100", memoryTotalBytes: 2n ** 36n }],
  };
  const host = { cpuUse: 0.5, gpus: [{ index: 0, utilisation: 0.25 }] };
  const shown = viewMachine({ machine, machineReading });
  const text = nodeText(JSON.parse(JSON.stringify({ ...idle, host, ...shown })) as typeof idle);
  const rows = text.split("\n").map((row) => row.trim().replaceAll(/ {2,}/g, " "));
  expect(rows).toEqual(
    expect.arrayContaining([
      "system kernel 6.8.0",
      "use 50 % of the processors",
      "load 1.0, 2.0, 3.0 (1, 5, 15 minutes)",
      "swap 0.0 GiB of 8.0 GiB",
      "/models models 1024.0 GiB 256.0 GiB –",
      "0 0000:3b:00.0 NVIDIA H100 – 64.0 GiB – 25 % – –",
      "nvme0n1 1024.0 GiB SSD –",
      "eth0 up 25 Gbit/s –",
    ]),
  );
});

test("a node whose agent reports nothing about its machine shows only its slots", () => {
  const shown = viewMachine(undefined);
  expect(nodeText(JSON.parse(JSON.stringify({ ...idle, ...shown })) as typeof idle)).toBe(nodesText([idle]));
});
