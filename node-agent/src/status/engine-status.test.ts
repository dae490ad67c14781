import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { EngineHandle, Launcher, Launchers } from "../engines/engine.ts";
import type { GpuProcess } from "../host/gpu.ts";
import { WireState, type ShownState, type SlotView } from "../slots/slot-view.ts";
import { engineStatuses } from "./engine-status.ts";
import { processFacts } from "./process-facts.ts";

const slot = asId<SlotName>("a");
const [chat, coder] = [asId<ModelId>("chat"), asId<ModelId>("coder")];
const engine = spawn("sleep", ["60"]);
afterAll(() => engine.kill());

const view = (given: Partial<SlotView> = {}): SlotView => ({
  ...{
    name: slot,
    models: [chat, coder],
    state: WireState.ACTIVE,
    activeModel: chat,
    running: 0,
    runningByRouter: new Map(),
  },
  ...{ waiting: 0, waiters: [], stateAgeMs: 0, sleepers: [] },
  ...given,
});

function statusOf(
  handles: readonly Partial<EngineHandle>[],
  given: Partial<SlotView> = {},
  onGpus?: readonly GpuProcess[],
) {
  const whole = handles.map((handle) => ({
    ...{
      slot,
      model: chat,
      launcher: "process",
      endpoint: { origin: "http://127.0.0.1:1" },
      pid: engine.pid!,
      asleep: false,
    },
    ...handle,
  })) as EngineHandle[];
  const launcher = {
    processes: ({ pid }: EngineHandle) => Promise.resolve(pid === engine.pid ? [engine.pid!] : []),
  } as unknown as Launcher;
  return engineStatuses({
    handles: { read: () => Promise.resolve(whole) },
    launchers: { process: launcher, systemd: launcher, external: launcher } as Launchers,
    gpuReader: { readGpuProcesses: () => Promise.resolve(onGpus) },
    restarts: { count: (_slot, model) => (model === chat ? 3 : 0) },
    slots: () => [view(given)],
    measured: () => ({ running: 1, kvCacheUse: 0.5, prefixCacheHitRate: 0.25 }),
  });
}

test("an engine's status has its process, the memory of the process, and the number of restarts", async () => {
  const onGpus = [
    { gpuUuid: "GPU-0", pid: engine.pid!, memoryUsedBytes: 5 },
    { gpuUuid: "GPU-1", pid: engine.pid!, memoryUsedBytes: 6 },
    { gpuUuid: "GPU-1", pid: 1, memoryUsedBytes: 100 },
  ];
  const [status] = await statusOf([{}], {}, onGpus);
  expect(status).toMatchObject({
    slot,
    model: chat,
    state: "awake",
    launcher: "process",
    pid: engine.pid,
    restarts: 3,
  });
  expect(status!.gpuMemoryBytes).toBe(11);
  expect(status!.hostMemoryBytes).toBeGreaterThan(100_000);
  expect(status!.ageSeconds).toBeLessThan(600);
});

test("memory is absent without GPU readings, and process facts are absent for an external engine", async () => {
  const [ours, theirs] = await statusOf([{}, { model: coder, launcher: "external", pid: undefined as never }]);
  expect(ours!.gpuMemoryBytes).toBeUndefined();
  expect(theirs).toEqual({ slot, model: coder, state: "unknown", launcher: "external", restarts: 0 });
});

test("a sleeping engine that nvidia-smi does not list by its pid shows the memory it was measured to keep", async () => {
  const sleepers = [{ model: coder, keptBytes: 7 }];
  expect((await statusOf([{ model: coder, asleep: true }], { sleepers }))[0]).toMatchObject({
    state: "asleep",
    gpuMemoryBytes: 7,
  });
});

test.each<[string, Partial<EngineHandle>, ShownState, ModelId | undefined]>([
  ["awake", {}, WireState.ACTIVE, chat],
  ["awake", {}, WireState.DRAINING_CLOSED, chat],
  ["starting", {}, WireState.STARTING, chat],
  ["stopping", {}, WireState.STOPPING, chat],
  ["asleep", { asleep: true }, WireState.ACTIVE, coder],
  ["falling asleep", { heading: "asleep" }, WireState.STOPPING, chat],
  ["waking", { heading: "awake" }, WireState.STARTING, chat],
  ["gone", { pid: 999_999_999 }, WireState.ACTIVE, chat],
  ["unknown", {}, WireState.FAILED, chat],
  ["unknown", {}, WireState.ACTIVE, coder],
])("an engine is %s", async (state, handle, ofSlot, activeModel) => {
  expect(await statusOf([handle], { state: ofSlot, activeModel })).toMatchObject([{ state }]);
});

test("engines of slots that are no longer configured are left out, and the others are sorted", async () => {
  const other = asId<SlotName>("gone");
  const found = await statusOf([{ model: coder }, { slot: other }, {}]);
  expect(found.map(({ model }) => model)).toEqual([chat, coder]);
});

test("process facts are read from /proc, even if the process has a misleading name, and are empty without a process", async () => {
  const proc = temporaryDirectory();
  await mkdir(join(proc, "7"));
  const fields = Array.from({ length: 30 }, (_, index) => (index === 19 ? "50000" : String(index)));
  await writeFile(join(proc, "7/stat"), `7 (engine) S) 1 2) ${["S", ...fields.slice(1)].join(" ")}`);
  await writeFile(join(proc, "7/status"), "Name:\tx\nVmRSS:\t    2048 kB\n");
  await writeFile(join(proc, "uptime"), "1000.50 1.0\n");
  expect(await processFacts(7, proc)).toEqual({ ageSeconds: 500.5, memoryBytes: 2 * 2 ** 20 });
  expect(await processFacts(8, proc)).toEqual({});
});

test("only the awake engine of a slot shows the use of its caches", async () => {
  expect((await statusOf([{}]))[0]).toMatchObject({ state: "awake", kvCacheUse: 0.5, prefixCacheHitRate: 0.25 });
  const [asleep] = await statusOf([{ asleep: true }]);
  expect([asleep!.state, asleep!.kvCacheUse, asleep!.prefixCacheHitRate]).toEqual(["asleep", undefined, undefined]);
});
