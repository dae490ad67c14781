import { pino } from "pino";
import { beforeEach, describe, expect, test } from "vitest";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { createEngineEvents, createSlotEvents } from "./engine-events.ts";
import { EngineRestarts } from "./engine-restarts.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { EngineFailures } from "../slots/engine-failures.ts";
import { createMetrics, type Metrics } from "./metrics.ts";

const slot = asId<SlotName>("a");
const model = asId<ModelId>("m");
const exit = { reason: "signal SIGKILL", output: "/var/log/a-m.log" };
let lines: { readonly level: number; readonly msg: string }[];
let metrics: Metrics;
let slots: ReturnType<typeof createSlotEvents>;
let engines: ReturnType<typeof createEngineEvents>;
let restarts: EngineRestarts;
let failures: EngineFailures;

beforeEach(() => {
  lines = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  metrics = createMetrics();
  failures = new EngineFailures(new VirtualClock());
  restarts = new EngineRestarts(metrics.engineRestarts, [model]);
  slots = createSlotEvents(log, metrics, restarts, failures, { switched() {}, startFailed() {} });
  engines = createEngineEvents(log, metrics, restarts, failures);
});

/** Returns the labels and values of one metric's series that are not 0. */
async function values(name: string): Promise<unknown[]> {
  const { values: all } = await metrics.registry.getSingleMetric(name)!.get();
  return all.flatMap(({ labels, value }) => (value === 0 ? [] : [{ ...labels, value }]));
}
const restarted = () => values("weiche_agent_engine_restarts_total");

test("every failure of an engine is kept with its reason, and is in no metric", async () => {
  const last = () => failures.all.get(slot)?.map(({ kind, reason }) => `${kind}: ${reason}`);
  engines.engineSaid(slot, model, ["loading", "no such file: /srv/x"]);
  slots.startFailed(slot, model, "exit code 1");
  expect(last()).toEqual(["start: exit code 1: no such file: /srv/x"]);
  slots.engineExited(slot, model, exit);
  expect(last()).toEqual(["exit: signal SIGKILL"]);
  slots.engineDied(slot, model, "core dead");
  expect(last()).toEqual(["exit: core dead"]);
  slots.stopFailed(slot, model, "too late");
  expect(last()).toEqual(["stop: too late"]);
  slots.engineSuspected(slot, model, "silent");
  expect(last()).toEqual(["suspected: silent"]);
  engines.sleeperExited(slot, model, exit);
  expect(last()).toEqual(["exit: signal SIGKILL"]);
  slots.readoptFailed(slot, "no directory");
  expect(last()).toEqual(["exit: signal SIGKILL", "search: no directory"]);
  expect(await metrics.registry.metrics()).not.toContain("no such file");
});

describe("a restart", () => {
  test("is not counted if the engine was requested, woken, adopted, or stopped by its slot", async () => {
    engines.engineReady(slot, model, "started", 1);
    engines.engineAsleep(slot, model, 1);
    engines.engineReady(slot, model, "woken", 1);
    engines.sleeperEvicted(slot, model);
    engines.engineStopped(slot, model);
    engines.engineReady(slot, model, "started", 1);
    engines.engineReady(slot, model, "adopted", 1);
    expect(await restarted()).toEqual([]);
  });

  test.each<[string, () => void]>([
    ["exit", () => slots.engineExited(slot, model, exit)],
    ["exit", () => engines.sleeperExited(slot, model, exit)],
    ["silent", () => slots.engineSuspected(slot, model, "silent")],
    ["refused", () => slots.engineSuspected(slot, model, "refused")],
    ["failing", () => slots.engineSuspected(slot, model, "failing")],
    ["probe", () => engines.engineSurprised(slot, model, "probe", "x")],
    ["sleep", () => engines.engineSurprised(slot, model, "sleep", "x")],
    ["wake", () => engines.engineSurprised(slot, model, "wake", "x")],
    ["start", () => slots.startFailed(slot, model, "x")],
  ])("after %s is counted once, when the engine is ready", async (reason, happens) => {
    happens();
    expect(await restarted()).toEqual([]);
    engines.engineReady(slot, model, "started", 1);
    engines.engineReady(slot, model, "started", 1);
    expect(await restarted()).toEqual([{ model, reason, value: 1 }]);
    expect(restarts.count(slot, model)).toBe(1);
    expect(restarts.count(asId<SlotName>("b"), model)).toBe(0);
  });

  test("counts the first reason: a frozen engine that does not stop and fails to start was silent", async () => {
    slots.engineSuspected(slot, model, "silent");
    engines.engineSurprised(slot, model, "stop", "x");
    slots.engineExited(slot, model, exit);
    slots.startFailed(slot, model, "x");
    engines.engineReady(slot, model, "started", 1);
    expect(await restarted()).toEqual([{ model, reason: "silent", value: 1 }]);
  });

  test("is not counted if the engine answers after all", async () => {
    engines.engineSurprised(slot, model, "stop", "x");
    slots.engineSuspected(slot, model, "silent");
    engines.engineReady(slot, model, "probed", 1);
    engines.engineReady(slot, model, "started", 1);
    expect(await restarted()).toEqual([]);
  });
});

test("a slot is in one state at a time", async () => {
  slots.stateChanged(slot, "starting", model);
  slots.stateChanged(slot, "draining-closed", model);
  expect(await values("weiche_agent_slot_state")).toEqual([{ slot, state: "draining-closed", value: 1 }]);
  expect((await metrics.registry.getSingleMetric("weiche_agent_slot_state")!.get()).values).toHaveLength(7);
});

test("a switch is one observation, with one for each of its phases", async () => {
  slots.switched(slot, { model, tookMs: 1_500, phasesMs: { drain: 500, probe: 1_000 } });
  const text = await metrics.registry.getSingleMetricAsString("weiche_agent_switch_phase_seconds");
  expect(text).toContain('weiche_agent_switch_phase_seconds_sum{slot="a",phase="drain"} 0.5');
  expect(text).toContain('weiche_agent_switch_phase_seconds_count{slot="a",phase="probe"} 1');
  expect(await metrics.registry.getSingleMetricAsString("weiche_agent_switch_seconds")).toContain('_sum{slot="a"} 1.5');
});

test("the error of an estimate is observed once its request is admitted, if it waited for more than a second [B9]", async () => {
  slots.requestAdmitted(slot, model, 20_000, 14_000);
  slots.requestAdmitted(slot, model, 1_000, 30_000);
  slots.requestAdmitted(slot, model, 20_000);
  const text = await metrics.registry.getSingleMetricAsString("weiche_agent_wait_estimate_error_seconds");
  const error = (of: string) => `weiche_agent_wait_estimate_error_seconds_${of}`;
  expect(text).toContain(`${error("sum")}{slot="a",model="m"} -6\n`);
  expect(text).toContain(`${error("bucket")}{le="-8",slot="a",model="m"} 0\n`);
  expect(text).toContain(`${error("bucket")}{le="-4",slot="a",model="m"} 1\n`);
  expect(text).toMatch(/_count\{slot="a",model="m"\} 1$/m);
});

test.each<[string, string, () => void]>([
  ["start", "engine did not start", () => slots.startFailed(slot, model, "x")],
  ["stop", "engine did not stop", () => slots.stopFailed(slot, model, "x")],
  ["exit", "engine ended by itself", () => slots.engineExited(slot, model, exit)],
  ["exit", "engine ended in its sleep", () => engines.sleeperExited(slot, model, exit)],
  ["sleep", "engine did not carry out an operation", () => engines.engineSurprised(slot, model, "sleep", "x")],
])("each fault of an engine is logged and counted: %s, %s", async (what, line, happens) => {
  happens();
  expect(lines).toMatchObject([{ msg: line, slot, model }]);
  expect(lines[0]!.level).toBeGreaterThanOrEqual(40);
  expect(await values("weiche_agent_engine_failures_total")).toEqual([{ slot, model, what, value: 1 }]);
});

test.each<[string, (report: typeof exit) => void]>([
  ["awake", (report) => slots.engineExited(slot, model, report)],
  ["asleep", (report) => engines.sleeperExited(slot, model, report)],
])("the exit of an engine that was %s is logged with the place of its output, never with the output", (_, happens) => {
  happens(Object.assign({ lastLines: ["a prompt"] }, exit));
  expect(lines).toMatchObject([exit]);
  expect(
    JSON.stringify(lines) +
      JSON.stringify(failures.all.get(slot), (_key, value: unknown) =>
        typeof value === "bigint" ? Number(value) : value,
      ),
  ).not.toContain("a prompt");
});

test("a foreign process on the slot's GPUs is logged and counted", async () => {
  engines.foreignGpuProcess(slot, 4711, undefined);
  expect(lines).toMatchObject([{ level: 40, pid: 4711 }]);
  expect(await values("weiche_agent_foreign_gpu_processes_total")).toEqual([{ slot, value: 1 }]);
});
