/** The status of the node's engines: state, memory and restarts. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineMetrics } from "../engines/dialect-lifecycle.ts";
import type { EngineHandle, Launchers } from "../engines/engine.ts";
import type { HandleStore } from "../engines/handle-store.ts";
import type { GpuProcess, GpuReader } from "../host/gpu.ts";
import { stateWords, type SlotView } from "../slots/slot-view.ts";
import { processFacts } from "./process-facts.ts";

export interface EngineStatus {
  readonly slot: string;
  readonly model: string;
  readonly state: "starting" | "awake" | "stopping" | "falling asleep" | "asleep" | "waking" | "gone" | "unknown";
  readonly launcher: EngineHandle["launcher"];
  /** Undefined for an external engine, as are the values that depend on it. */
  readonly pid?: number;
  readonly ageSeconds?: number;
  /** Restarts after a lost engine, since this agent started. */
  readonly restarts: number;
  /** Memory of the engine's whole process group. */
  readonly hostMemoryBytes?: number;
  readonly gpuMemoryBytes?: number;
  /** 0 to 1. Only an awake engine reports it. */
  readonly kvCacheUse?: number;
  readonly prefixCacheHitRate?: number;
}

interface EngineStatusOptions {
  readonly handles: Pick<HandleStore, "read">;
  readonly launchers: Launchers;
  readonly gpuReader: Pick<GpuReader, "readGpuProcesses">;
  readonly restarts: { count(slot: SlotName, model: ModelId): number };
  readonly slots: () => readonly SlotView[];
  /** Metrics of the awake engine of a slot. */
  readonly measured: (slot: SlotName) => EngineMetrics | undefined;
}

/** Maximum age of GPU measurements, because `--watch` reads the status every second. */
const gpuAgeMsMax = 5_000;

export async function engineStatuses(options: EngineStatusOptions): Promise<readonly EngineStatus[]> {
  const [handles, onGpus] = await Promise.all([
    options.handles.read(),
    options.gpuReader.readGpuProcesses(gpuAgeMsMax),
  ]);
  const views = new Map(options.slots().map((view) => [view.name, view]));
  const known = handles.filter(({ slot }) => views.has(slot));
  const engines = await Promise.all(
    known.map((handle) => engineStatus(handle, views.get(handle.slot)!, onGpus, options)),
  );
  return engines.toSorted((a, b) => compare(a.slot, b.slot) || compare(a.model, b.model));
}

async function engineStatus(
  handle: EngineHandle,
  view: SlotView,
  onGpus: readonly GpuProcess[] | undefined,
  { launchers, restarts, measured }: EngineStatusOptions,
): Promise<EngineStatus> {
  const { slot, model, launcher, pid } = handle;
  const pids = await launchers[launcher].processes(handle);
  const facts = await Promise.all(pids.map((each) => processFacts(each)));
  const { ageSeconds } = facts[pids.indexOf(pid ?? 0)] ?? {};
  const hostMemoryBytes = sum(facts.flatMap(({ memoryBytes }) => memoryBytes ?? []));
  const held = onGpus
    ?.filter((each) => pids.includes(each.pid))
    .flatMap(({ memoryUsedBytes }) => memoryUsedBytes ?? []);
  const gpuMemoryBytes = sum(held ?? []) ?? view.sleepers.find((sleeper) => sleeper.model === model)?.keptBytes;
  const state = pid !== undefined && pids.length === 0 ? "gone" : stateOf(handle, view);
  const { kvCacheUse, prefixCacheHitRate } = (state === "awake" ? measured(slot) : undefined) ?? {};
  return {
    ...{ slot, model, launcher, state },
    pid,
    ageSeconds: ageSeconds === undefined ? undefined : Math.round(ageSeconds),
    restarts: restarts.count(slot, model),
    ...{ hostMemoryBytes, gpuMemoryBytes, kvCacheUse, prefixCacheHitRate },
  };
}

function stateOf({ model, asleep, heading }: EngineHandle, slot: SlotView): EngineStatus["state"] {
  if (asleep) return "asleep";
  if (heading) return heading === "asleep" ? "falling asleep" : "waking";
  if (slot.activeModel !== model) return "unknown";
  const word = stateWords[slot.state];
  if (word === "starting" || word === "stopping") return word;
  return word === "failed" || word === "empty" ? "unknown" : "awake";
}

function sum(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((all, value) => all + value, 0);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
