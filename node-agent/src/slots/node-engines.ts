/** Creates the engines of one slot, and handles events that concern all engines of the node. */
import type { SlotConfig } from "../config/config.ts";
import type { GpuReader } from "../host/gpu.ts";
import { refuseEngine, type RecoveryEvents } from "../engines/engine-recovery.ts";
import type { EngineSpec } from "../engines/engine.ts";
import { processesBehind } from "../engines/launchers/processes-behind.ts";
import type { EngineHost } from "../engines/running-engine.ts";
import type { SlotEngineEvents } from "../engines/slot-engines-options.ts";
import { LocalSlotEngines } from "../engines/slot-engines.ts";
import { SlotMemory, type SlotMemoryEvents } from "../engines/slot-memory.ts";

interface NodeEngineOptions {
  readonly host: EngineHost;
  readonly gpuReader: GpuReader;
  readonly events: SlotEngineEvents & SlotMemoryEvents;
  /** The engines of all slots, because slots may share a GPU. */
  readonly specs: readonly EngineSpec[];
  /** Resolves when the engines of slots that are no longer configured are gone. If undefined, there are none. */
  readonly forgotten?: Promise<unknown>;
}

export function createSlotEngines(
  slot: Pick<SlotConfig, "name" | "gpus" | "engines" | "memory">,
  options: NodeEngineOptions,
): { readonly engines: LocalSlotEngines; readonly memory: SlotMemory } {
  const { host, events } = options;
  const memory = new SlotMemory({
    ...{ slot: slot.name, gpus: slot.gpus, limits: slot.memory, events },
    ...{
      clock: host.clock,
      reader: options.gpuReader,
      handles: host.handles,
      engineProcesses: () => engineProcesses(options),
    },
  });
  const engineOptions = { slot: slot.name, engines: slot.engines, host, memory, events, forgotten: options.forgotten };
  return { engines: new LocalSlotEngines(engineOptions), memory };
}

/**
 * Returns the process ids of all engines of the node. Undefined if an engine is external, because its process ids are
 * unknown.
 */
async function engineProcesses({ host, specs }: NodeEngineOptions): Promise<ReadonlySet<number> | undefined> {
  const { handles, launchers } = host;
  const stored = await handles.read();
  const own = await Promise.all(stored.map((handle) => launchers[handle.launcher].processes(handle)));
  const urls = specs.flatMap(({ launcher }) => (launcher.kind === "external" ? [launcher.url] : []));
  const others = await Promise.all(urls.map((url) => processesBehind(url)));
  return others.includes(undefined) ? undefined : new Set([...own.flat(), ...others.flatMap((pids) => [...pids!])]);
}

/**
 * Stops engines of slots that are no longer configured, because they hold GPU memory. `gone` resolves when they have
 * ended. An engine that does not stop keeps its handle, and the next agent tries again.
 */
export async function stopForgottenEngines(
  slots: readonly Pick<SlotConfig, "name">[],
  host: EngineHost,
  events: RecoveryEvents,
): Promise<{ readonly gone: Promise<unknown> }> {
  const forgotten = (await host.handles.read()).filter((handle) => slots.every(({ name }) => name !== handle.slot));
  const reason = "its slot is no longer configured";
  return { gone: Promise.allSettled(forgotten.map((handle) => refuseEngine(handle, reason, host, events))) };
}
