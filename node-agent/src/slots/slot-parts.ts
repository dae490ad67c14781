/** Dependencies of the runner of one slot, and how it is closed. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { SlotConfig } from "../config/config.ts";
import type { SlotEngines } from "../engines/engine.ts";
import type { SlotEvents } from "./slot-events.ts";
import type { transition } from "./slot.ts";

export interface SlotParts {
  readonly config: SlotConfig;
  readonly engines: SlotEngines;
  readonly clock: Clock;
  readonly events: SlotEvents;
  /** Replaced only by tests that show what goes wrong without a part of it. */
  readonly transition?: typeof transition;
}

export interface CloseOptions {
  readonly stopEngines: boolean;
  readonly deadlineMs: number;
}
