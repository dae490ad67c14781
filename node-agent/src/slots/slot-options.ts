/** The parts of a slot's runner, and the options for closing it. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { SlotConfig } from "../config/config.ts";
import type { SlotEngines } from "../engines/engine.ts";
import type { SlotEvents } from "./slot-events.ts";
import type { transition } from "./slot.ts";

export interface SlotOptions {
  readonly config: SlotConfig;
  readonly engines: SlotEngines;
  readonly clock: Clock;
  readonly events: SlotEvents;
  /** Set only by tests that replace a rule to show what it prevents. */
  readonly transition?: typeof transition;
}

export interface CloseOptions {
  readonly stopEngines: boolean;
  readonly deadlineMs: number;
}
