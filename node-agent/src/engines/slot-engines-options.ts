/** Dependencies of the engines of one slot. */
import type { SlotName } from "@weiche/shared/ids.ts";
import type { EngineSpec } from "./engine.ts";
import type { EngineHost } from "./running-engine.ts";
import type { SlotEngineEvents } from "./slot-engine-events.ts";
import type { SlotMemory } from "./slot-memory.ts";

export interface SlotEnginesOptions {
  readonly slot: SlotName;
  readonly engines: readonly EngineSpec[];
  readonly host: EngineHost;
  readonly memory: SlotMemory;
  readonly events: SlotEngineEvents;
  /** Resolves when engines of slots that are no longer configured are gone; until then they may hold GPU memory. */
  readonly forgotten?: Promise<unknown> | undefined;
}
