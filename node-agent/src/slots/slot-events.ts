/**
 * Events of a slot for the operator. Every name comes from the configuration, so that metric labels are from closed
 * sets.
 */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { ExitReport, FoundEngine } from "../engines/engine.ts";
import type { RefusalKind } from "./slot-state.ts";
import type { SlotStateWord } from "./slot-view.ts";
import type { SwitchReport } from "./switch-meter.ts";

export interface SlotEvents {
  stateChanged(slot: SlotName, state: SlotStateWord, active: ModelId | undefined): void;
  /** `estimatedMs`: the wait that was estimated when the request came. Undefined if it did not wait. */
  requestAdmitted(slot: SlotName, model: ModelId, waitedMs: number, estimatedMs?: number): void;
  /** `too_many_answers`: the engine can never give that many at once. After other codes a client may try again. */
  requestRefused(slot: SlotName, model: ModelId, code: RefusalKind | "too_many_answers"): void;
  /** The client left while its request waited. */
  waiterLeft(slot: SlotName, model: ModelId): void;
  switched(slot: SlotName, report: SwitchReport): void;
  startFailed(slot: SlotName, model: ModelId, reason: string): void;
  stopFailed(slot: SlotName, model: ModelId, reason: string): void;
  readopted(slot: SlotName, found: FoundEngine | undefined): void;
  readoptFailed(slot: SlotName, reason: string): void;
  engineExited(slot: SlotName, model: ModelId, report: ExitReport): void;
  /** The engine reported that it is dead. Its process is stopped. */
  engineDied(slot: SlotName, model: ModelId, reason: string): void;
  engineSuspected(slot: SlotName, model: ModelId, reason: string): void;
}
