/** Makes load reports from slots, engines and host. Pure. */
import type {
  EngineFailures,
  HostLoad,
  LoadReport,
  PastSwitch as WireSwitch,
  SlotHistory,
  SlotLoad,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { SlotName } from "@weiche/shared/ids.ts";
import type { EngineMetrics } from "../engines/dialect-lifecycle.ts";
import type { EngineFailure } from "../slots/engine-failures.ts";
import type { SlotView } from "../slots/slot-view.ts";
import type { PastSwitch } from "../slots/switch-history.ts";
import type { GpuReading } from "../host/gpu.ts";
import type { HostReading } from "../host/host.ts";
import type { Machine, MachineReading } from "@weiche/shared/machine.ts";
import { cutMachine } from "@weiche/shared/wire/cut-machine.ts";
import { machinePartsMax } from "@weiche/shared/wire/link-bounds.ts";
import { machineLoad, readingLoad } from "./machine-load.ts";
import { optionalUint32, optionalUint64, uint32 } from "./whole-numbers.ts";

/** Every router gets a report this often. All routers also get one when a slot's state changes. */
export const reportEveryMs = 1_000;
/** The minimum pause between reports of changes. Without it, a busy node would send a report for each request. */
export const reportSpacingMs = 20;

/** The load of the node, the same for every router. Values that are not measured are undefined. */
export interface NodeLoad {
  readonly slots: readonly SlotView[];
  /** Metrics of awake engines. */
  readonly engines: ReadonlyMap<SlotName, EngineMetrics>;
  /** Past switches of slots. The same array means the same switches. */
  readonly past?: Dated<PastSwitch>;
  /** Failures of engines, likewise. */
  readonly failures?: Dated<EngineFailure>;
  /** `oldestMs` is undefined if there is no record or it could not be read. */
  readonly outbox?: { readonly records: number; readonly oldestMs?: number | undefined };
  readonly host?: HostReading;
  readonly gpus?: readonly GpuReading[];
  readonly machine?: Machine;
  readonly reading?: MachineReading;
  readonly maintenance: boolean;
  /** False while the agent admits no requests, because it starts, stops or has a full outbox. */
  readonly admitting: boolean;
}

/** Dated facts of each slot. `nowMs`: the current time on their monotonic clock. */
interface Dated<Fact> {
  readonly of: ReadonlyMap<SlotName, readonly Fact[]>;
  readonly nowMs: number;
}

/** The rarely changing facts that one link has reported last. */
export type Told = Partial<Pick<NodeLoad, "machine" | "reading" | "past" | "failures">>;

/** Returns the report for one router. It contains the machine and past switches only if they differ from `told`. */
export function loadReport(load: NodeLoad, routerId: string, sequence: bigint, told: Told = {}): LoadReport {
  const { slots, host, gpus, maintenance, admitting, outbox } = load;
  return {
    sequence,
    slots: slots.map((slot) => slotLoad(slot, routerId, load, told)),
    host: host || gpus ? hostLoad(host, gpus ?? []) : undefined,
    maintenance,
    admitting,
    machine: load.machine === told.machine ? undefined : cutMachine(machineLoad(load.machine)),
    machineReading: load.reading === told.reading ? undefined : cutMachine(readingLoad(load.reading)),
    outbox: outbox && { records: optionalUint64(outbox.records)!, oldestMs: optionalUint32(outbox.oldestMs) },
  };
}

function slotLoad(slot: SlotView, routerId: string, load: NodeLoad, told: Told): SlotLoad {
  // Each field is written out, because nodes make reports all the time, and a general conversion is several times slower.
  const { switching } = slot;
  const engine = load.engines.get(slot.name);
  return {
    name: slot.name,
    state: slot.state,
    activeModel: slot.activeModel,
    nextModel: slot.nextModel,
    running: slot.running,
    maxConcurrent: slot.maxConcurrent,
    history: historyOf(slot.name, load, told),
    failures: failuresOf(slot.name, load, told),
    runningOfRouter: slot.runningByRouter.get(routerId) ?? 0,
    waiters: slot.waiters.map(({ model, waiting, nextServedMs, lastServedMs }) => ({
      model,
      waiting,
      nextServedMs: optionalUint32(nextServedMs),
      lastServedMs: optionalUint32(lastServedMs),
    })),
    oldestRunningMs: optionalUint32(slot.oldestRunningMs),
    closesInMs: optionalUint32(slot.closesInMs),
    stateAgeMs: uint32(slot.stateAgeMs),
    engine: engine && {
      ...engine,
      running: optionalUint32(engine.running),
      waiting: optionalUint32(engine.waiting),
    },
    retryInMs: optionalUint32(slot.retryInMs),
    oldestWaitingMs: optionalUint32(slot.oldestWaitingMs),
    switching: switching && {
      ageMs: uint32(switching.ageMs),
      phase: switching.phase,
      usualMs: optionalUint32(switching.usualMs),
    },
  } satisfies Record<keyof SlotLoad, unknown>;
}

function historyOf(slot: SlotName, { past }: NodeLoad, told: Told): SlotHistory | undefined {
  const switches = past?.of.get(slot);
  if (!past || !switches || switches === told.past?.of.get(slot)) return undefined;
  return { switches: switches.map((one) => pastLoad(one, past.nowMs)) };
}

function failuresOf(slot: SlotName, { failures }: NodeLoad, told: Told): EngineFailures | undefined {
  const all = failures?.of.get(slot);
  if (!failures || !all || all === told.failures?.of.get(slot)) return undefined;
  return {
    failures: all.map(({ number, atMs, model, kind, reason, lines }) => ({
      ...{ number, agoMs: uint32(failures.nowMs - atMs), model, kind, reason, lines: [...lines] },
    })),
  };
}

function pastLoad({ endedAtMs, model, report }: PastSwitch, nowMs: number): WireSwitch {
  const { drain, stop, memory, start, probe } = report?.phasesMs ?? {};
  return {
    endedAgoMs: uint32(nowMs - endedAtMs),
    fromModel: report?.from,
    model,
    failed: report === undefined,
    tookMs: uint32(report?.tookMs ?? 0),
    drainMs: optionalUint32(drain),
    stopMs: optionalUint32(stop),
    memoryMs: optionalUint32(memory),
    startMs: optionalUint32(start),
    probeMs: optionalUint32(probe),
  };
}

function hostLoad(host: HostReading | undefined, gpus: readonly GpuReading[]): HostLoad {
  return {
    cpuUse: host?.cpuUse,
    memoryTotalBytes: optionalUint64(host?.memoryTotalBytes),
    memoryAvailableBytes: optionalUint64(host?.memoryAvailableBytes),
    gpus: gpus.slice(0, machinePartsMax).map((gpu) => ({
      ...gpu,
      memoryTotalBytes: optionalUint64(gpu.memoryTotalBytes),
      memoryUsedBytes: optionalUint64(gpu.memoryUsedBytes),
    })),
  };
}
