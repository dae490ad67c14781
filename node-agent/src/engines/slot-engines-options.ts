/** What the engines of one slot are made of. */
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
  /** Before it has resolved, an engine that is nobody's any more may hold memory. */
  readonly forgotten?: Promise<unknown> | undefined;
}
