/** What a load report says: the slots as they look from outside, what engines and host measure of themselves. Pure. */
import type { SlotName } from "@weiche/shared/ids.ts";
import type { EngineMetrics } from "../engines/dialect-lifecycle.ts";
import type { SlotView } from "../slots/slot-view.ts";
import type { GpuReading } from "../host/gpu.ts";
import type { HostReading } from "../host/host.ts";

/** The node as it is now, for any router. What is not measured is absent. */
export interface NodeLoad {
  readonly slots: readonly SlotView[];
  /** What the awake engines measure. */
  readonly engines: ReadonlyMap<SlotName, EngineMetrics>;
  readonly host?: HostReading;
  readonly gpus?: readonly GpuReading[];
  readonly maintenance: boolean;
  /** False while the agent admits nothing: stopping, or the outbox is full. */
  readonly admitting: boolean;
}

/** The same for one router. */
export interface LoadReport {
  readonly slots: readonly SlotLoad[];
  readonly host?: HostLoad;
  readonly maintenance: boolean;
  readonly admitting: boolean;
}

export interface SlotLoad extends Omit<SlotView, "models" | "waiting" | "runningByRouter" | "sleepers"> {
  /** Of the running requests, the ones that came through the router: it knows those better itself. */
  readonly runningOfRouter: number;
  readonly engine?: EngineMetrics;
}

export interface HostLoad extends HostReading {
  readonly gpus: readonly GpuReading[];
}

export function loadReport(load: NodeLoad, routerId: string): LoadReport {
  const { slots, engines, host, gpus, maintenance, admitting } = load;
  return {
    slots: slots.map(({ models: _models, waiting: _waiting, runningByRouter, sleepers: _sleepers, ...slot }) => ({
      ...slot,
      runningOfRouter: runningByRouter.get(routerId) ?? 0,
      ...(engines.has(slot.name) ? { engine: engines.get(slot.name)! } : {}),
    })),
    ...(host || gpus ? { host: { ...host, gpus: gpus ?? [] } } : {}),
    maintenance,
    admitting,
  };
}
