/** Makes load reports of slots, engines and host. Pure. */
import type { HostLoad, LoadReport, SlotLoad } from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { SlotName } from "@weiche/shared/ids.ts";
import type { EngineMetrics } from "../engines/dialect-lifecycle.ts";
import type { SlotView } from "../slots/slot-view.ts";
import type { GpuReading } from "../host/gpu.ts";
import type { HostReading } from "../host/host.ts";
import type { Machine, MachineReading } from "@weiche/shared/machine.ts";
import { machineLoad, readingLoad } from "./machine-load.ts";
import { optionalUint32, optionalUint64, uint32 } from "./whole-numbers.ts";

/** Load of the node, the same for every router. Values that are not measured are absent. */
export interface NodeLoad {
  readonly slots: readonly SlotView[];
  /** Metrics of awake engines. */
  readonly engines: ReadonlyMap<SlotName, EngineMetrics>;
  readonly host?: HostReading;
  readonly gpus?: readonly GpuReading[];
  readonly machine?: Machine;
  readonly reading?: MachineReading;
  readonly maintenance: boolean;
  /** False while the agent admits nothing: stopping, or the outbox is full. */
  readonly admitting: boolean;
}

/** The facts of the machine that one link reported last. */
export type Told = Pick<NodeLoad, "machine" | "reading">;

/** The report for one router. It has the machine only where that differs from `told`. */
export function loadReport(load: NodeLoad, routerId: string, sequence: bigint, told: Told = {}): LoadReport {
  const { slots, engines, host, gpus, maintenance, admitting } = load;
  return {
    sequence,
    slots: slots.map((slot) => slotLoad(slot, routerId, engines.get(slot.name))),
    host: host || gpus ? hostLoad(host, gpus ?? []) : undefined,
    maintenance,
    admitting,
    machine: load.machine === told.machine ? undefined : machineLoad(load.machine),
    machineReading: load.reading === told.reading ? undefined : readingLoad(load.reading),
  };
}

function slotLoad(slot: SlotView, routerId: string, engine: EngineMetrics | undefined): SlotLoad {
  const { running, waiting } = engine ?? {};
  return {
    ...slot,
    runningOfRouter: slot.runningByRouter.get(routerId) ?? 0,
    oldestRunningMs: optionalUint32(slot.oldestRunningMs),
    closesInMs: optionalUint32(slot.closesInMs),
    stateAgeMs: uint32(slot.stateAgeMs),
    retryInMs: optionalUint32(slot.retryInMs),
    engine: engine && { ...engine, running: optionalUint32(running), waiting: optionalUint32(waiting) },
  };
}

function hostLoad(host: HostReading | undefined, gpus: readonly GpuReading[]): HostLoad {
  return {
    cpuUse: host?.cpuUse,
    memoryTotalBytes: optionalUint64(host?.memoryTotalBytes),
    memoryAvailableBytes: optionalUint64(host?.memoryAvailableBytes),
    gpus: gpus.map((gpu) => ({
      ...gpu,
      memoryTotalBytes: optionalUint64(gpu.memoryTotalBytes),
      memoryUsedBytes: optionalUint64(gpu.memoryUsedBytes),
    })),
  };
}
