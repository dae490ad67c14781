import { beforeEach, expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { EngineMetrics } from "../engines/dialect-lifecycle.ts";
import { EngineLife } from "../engines/engine-life.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import type { GpuReading } from "../host/gpu.ts";
import type { RouterState } from "../links/router-links.ts";
import { WireState, type SlotView } from "../slots/slot-view.ts";
import { publishGauges } from "./gauges.ts";
import { Telemetry, type TelemetryOptions } from "./telemetry.ts";

const slot = asId<SlotName>("a");
const model = asId<ModelId>("m");
let metrics: Metrics;
let gpus: readonly GpuReading[] | undefined;
let routers: RouterState[];
let engineMetrics: () => Promise<EngineMetrics>;
let slots: SlotView[];
let telemetry: Telemetry;
let freeBytes: number | undefined;
let maintenance: { on: boolean };

beforeEach(() => {
  metrics = createMetrics();
  gpus = undefined;
  routers = [{ address: "r:1", state: "linked", dataSessions: 2 }];
  engineMetrics = () => Promise.resolve({ running: 3 });
  slots = [];
  freeBytes = 7_000_000;
  maintenance = { on: false };
  const lifecycle = { metrics: () => engineMetrics() };
  const endpoint = { origin: "http://127.0.0.1:1" };
  const spec = {
    model,
    dialect: "vllm",
    launcher: { kind: "external", url: endpoint.origin },
    maxConcurrent: 1,
  } as const;
  telemetry = new Telemetry({
    gpuReader: { readGpus: () => Promise.resolve(gpus), readGpuProcesses: () => Promise.resolve(undefined) },
    dialects: {
      vllm: lifecycle,
      "llama-server": lifecycle,
      openai: lifecycle,
    } as unknown as TelemetryOptions["dialects"],
    life: new EngineLife(new VirtualClock()),
    awake: () => [{ slot, spec, endpoint }],
  });
});

const publish = () =>
  publishGauges(metrics, {
    outbox: { depth: 4, admitting: true, freeBytes, oldestMs: () => Promise.resolve(1_500) },
    slots: { views: () => slots },
    ingress: { unreadBytes: 0 },
    links: { states: () => routers },
    telemetry,
    machine: {},
    maintenance,
    certificates: { links: undefined, ops: undefined },
  });

function viewOfSlot(): SlotView {
  return {
    ...{ name: slot, models: [model], state: WireState.ACTIVE, stateAgeMs: 0 },
    ...{ running: 0, runningByRouter: new Map(), waiting: 0, waiters: [], sleepers: [] },
  };
}

/** Returns samples of our own metrics whose names begin with `prefix`. */
async function samples(prefix: string): Promise<string[]> {
  return (await metrics.registry.metrics()).split("\n").filter((line) => line.startsWith(`weiche_agent_${prefix}`));
}

test("without a GPU there is no GPU series, no reading and no list", async () => {
  await telemetry.measure();
  expect(telemetry.host).toBeDefined();
  await publish();
  expect(await samples("gpu")).toEqual([]);
  expect(telemetry.gpus).toBeUndefined();
});

test("the host's measurements are among the metrics", async () => {
  await telemetry.measure();
  expect(telemetry.host).toBeDefined();
  await publish();
  const names = (await samples("host")).map((line) => line.split(" ")[0]);
  expect(names).toEqual(
    ["cpu_use_ratio", "memory_total_bytes", "memory_available_bytes"].map((n) => `weiche_agent_host_${n}`),
  );
});

test("a GPU that is no longer measured has no series, and neither has a router that is no longer dialled", async () => {
  gpus = [{ index: 0, uuid: "GPU-0", memoryUsedBytes: 5, powerWatts: 70 }];
  await telemetry.measure();
  expect(telemetry.gpus).toBeDefined();
  await publish();
  expect(await samples("gpu")).toEqual([
    'weiche_agent_gpu_memory_used_bytes{gpu="0"} 5',
    'weiche_agent_gpu_power_watts{gpu="0"} 70',
  ]);
  gpus = undefined;
  await telemetry.measure();
  expect(telemetry.gpus).toBeUndefined();
  routers = [];
  await publish();
  expect(await samples("gpu")).toEqual([]);
  expect([...(await samples("router_link")), ...(await samples("data_sessions"))]).toEqual([]);
});

test("a sleeper's memory is shown while it sleeps, and only if it was measured", async () => {
  const view = viewOfSlot();
  slots = [{ ...view, sleepers: [{ model, keptBytes: 7 }, { model: asId<ModelId>("n") }] }];
  await publish();
  expect(await samples("sleeper")).toEqual(['weiche_agent_sleeper_gpu_memory_bytes{slot="a",model="m"} 7']);
  slots = [{ ...view, sleepers: [] }];
  await publish();
  expect(await samples("sleeper")).toEqual([]);
});

test("a scrape shows the present links and outbox, without a measurement in between", async () => {
  await publish();
  expect(await samples("router_link_up")).toEqual(['weiche_agent_router_link_up{router="r:1"} 1']);
  expect(await samples("data_sessions")).toEqual(['weiche_agent_data_sessions{router="r:1"} 2']);
  expect(await samples("outbox")).toEqual([
    "weiche_agent_outbox_records 4",
    "weiche_agent_outbox_oldest_seconds 1.5",
    "weiche_agent_outbox_admitting 1",
    "weiche_agent_outbox_disk_free_bytes 7000000",
  ]);
  freeBytes = undefined;
  routers = [{ address: "r:1", state: "connecting", dataSessions: 0 }];
  await publish();
  expect(await samples("router_link_up")).toEqual(['weiche_agent_router_link_up{router="r:1"} 0']);
  expect(await samples("outbox_disk")).toEqual([]);
});

test("a scrape shows what a slot serves, what comes next, which models are waited for and how long, and when its drain closes", async () => {
  const b = asId<ModelId>("b");
  const waiters = [{ model: b, waiting: 3 }];
  const drain = { nextModel: b, waiting: 3, waiters, oldestWaitingMs: 2_500, closesInMs: 7_500, stateAgeMs: 2_000 };
  slots = [{ ...viewOfSlot(), models: [model, b], activeModel: model, ...drain }];
  await publish();
  const ofModels = (name: string, values: object) =>
    Object.entries(values).map(([of, value]) => `weiche_agent_${name}{slot="a",model="${of}"} ${value}`);
  expect(await samples("slot_active_model")).toEqual(ofModels("slot_active_model", { m: 1, b: 0 }));
  expect(await samples("slot_next_model")).toEqual(ofModels("slot_next_model", { m: 0, b: 1 }));
  expect(await samples("model_waiting")).toEqual(ofModels("model_waiting_requests", { m: 0, b: 3 }));
  expect(await samples("oldest_waiter")).toEqual(['weiche_agent_oldest_waiter_seconds{slot="a"} 2.5']);
  expect(await samples("slot_drain_closes")).toEqual(['weiche_agent_slot_drain_closes_seconds{slot="a"} 7.5']);
  expect(await samples("slot_state_seconds")).toEqual(['weiche_agent_slot_state_seconds{slot="a"} 2']);
  slots = [{ ...viewOfSlot(), models: [model, b], activeModel: b }];
  await publish();
  expect(await samples("slot_active_model")).toEqual(ofModels("slot_active_model", { m: 0, b: 1 }));
  expect(await samples("slot_next_model")).toEqual(ofModels("slot_next_model", { m: 0, b: 0 }));
  expect(await samples("model_waiting")).toEqual(ofModels("model_waiting_requests", { m: 0, b: 0 }));
  expect(await samples("oldest_waiter")).toEqual(['weiche_agent_oldest_waiter_seconds{slot="a"} 0']);
  expect(await samples("slot_drain_closes")).toEqual([]);
});

test("maintenance is 1 while the router or the operator sets it", async () => {
  await publish();
  expect(await samples("maintenance")).toEqual(["weiche_agent_maintenance 0"]);
  maintenance.on = true;
  await publish();
  expect(await samples("maintenance")).toEqual(["weiche_agent_maintenance 1"]);
});

test("an engine that reports nothing has no measurement, and others keep theirs", async () => {
  await telemetry.measure();
  expect(telemetry.engines.get(slot)).toEqual({ running: 3 });
  engineMetrics = () => Promise.reject(new Error("no answer"));
  await telemetry.measure();
  expect(telemetry.engines.size).toBe(0);
});

test("an engine's report about its caches is shown while the engine reports it", async () => {
  engineMetrics = () => Promise.resolve({ kvCacheUse: 0.5, prefixCacheHitRate: 0.25 });
  await telemetry.measure();
  expect(telemetry.engines.get(slot)?.kvCacheUse).toBe(0.5);
  await publish();
  expect([...(await samples("engine_kv")), ...(await samples("engine_prefix"))]).toEqual([
    'weiche_agent_engine_kv_cache_use_ratio{slot="a",model="m"} 0.5',
    'weiche_agent_engine_prefix_cache_hit_ratio{slot="a",model="m"} 0.25',
  ]);
  engineMetrics = () => Promise.resolve({});
  await telemetry.measure();
  expect(telemetry.engines.get(slot)).toEqual({});
  await publish();
  expect([...(await samples("engine_kv")), ...(await samples("engine_prefix"))]).toEqual([]);
});
