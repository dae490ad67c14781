/** What concerns all engines of the node, and how those of one slot are put together. */
import type { SlotConfig } from "../config.ts";
import type { GpuReader } from "../report/gpu.ts";
import type { EngineHost } from "./running-engine.ts";
import { LocalSlotEngines, type SlotEngineEvents } from "./slot-engines.ts";
import { SlotMemory, type SlotMemoryEvents } from "./slot-memory.ts";

export interface NodeEngineParts {
  readonly host: EngineHost;
  readonly gpuReader: GpuReader;
  readonly events: SlotEngineEvents & SlotMemoryEvents;
}

export function createSlotEngines(
  slot: Pick<SlotConfig, "name" | "gpus" | "engines" | "memory">,
  parts: NodeEngineParts,
): { readonly engines: LocalSlotEngines; readonly memory: SlotMemory } {
  const { host, events } = parts;
  // Which processes belong to an external engine cannot be told: beside one, nothing is called foreign.
  const hasExternal = slot.engines.some((engine) => engine.launcher.kind === "external");
  const memory = new SlotMemory({
    ...{
      slot: slot.name,
      gpus: slot.gpus,
      clock: host.clock,
      reader: parts.gpuReader,
      limits: slot.memory,
      events,
    },
    engineProcesses: () => (hasExternal ? Promise.resolve(undefined) : engineProcesses(host)),
  });
  return { engines: new LocalSlotEngines({ slot: slot.name, engines: slot.engines, host, memory, events }), memory };
}

/** Of all slots: slots may share a GPU. */
async function engineProcesses({ handles, launchers }: EngineHost): Promise<ReadonlySet<number>> {
  const stored = await handles.read();
  return new Set((await Promise.all(stored.map((handle) => launchers[handle.launcher].processes(handle)))).flat());
}

/** Stops engines of slots that are no longer configured: nobody else would, and they hold GPU memory. */
export async function stopForgottenEngines(
  slots: readonly Pick<SlotConfig, "name">[],
  { handles, launchers }: EngineHost,
  events: Pick<SlotEngineEvents, "engineNotAdopted" | "engineSurprised">,
): Promise<void> {
  const forgotten = (await handles.read()).filter((handle) => slots.every(({ name }) => name !== handle.slot));
  await Promise.all(
    forgotten.map(async (handle) => {
      events.engineNotAdopted(handle.slot, handle.model, "its slot is no longer configured");
      try {
        await launchers[handle.launcher].stop(handle);
        await handles.remove(handle.slot, handle.model);
      } catch (error) {
        events.engineSurprised(handle.slot, handle.model, "stop", (error as Error).message);
      }
    }),
  );
}
