/** What the runner of one slot is made of, and how it is closed. */
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
  /** The slot's behaviour; another one only where a test shows what would go wrong without a part of it. */
  readonly transition?: typeof transition;
}

export interface CloseOptions {
  readonly stopEngines: boolean;
  readonly deadlineMs: number;
}
