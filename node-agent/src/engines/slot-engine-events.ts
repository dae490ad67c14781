/** What happens to the engines of a slot that an operator wants to know. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { ExitReport } from "./engine.ts";

export interface SlotEngineEvents {
  /** It answers: `how` says whether it was started, woken, found again or only probed. */
  engineReady(slot: SlotName, model: ModelId, how: "started" | "woken" | "adopted" | "probed", tookMs: number): void;
  engineAsleep(slot: SlotName, model: ModelId, tookMs: number): void;
  engineStopped(slot: SlotName, model: ModelId): void;
  /** A sleep, wake, probe or stop went wrong; after all but the last the engine is stopped. */
  engineSurprised(slot: SlotName, model: ModelId, what: "sleep" | "wake" | "probe" | "stop", reason: string): void;
  /** What an engine said last before its start failed: for the log only. */
  engineSaid(slot: SlotName, model: ModelId, lastLines: readonly string[]): void;
  /** An engine ended in its sleep. Of the awake one the slot tells. */
  sleeperExited(slot: SlotName, model: ModelId, report: ExitReport): void;
  /** An engine of an earlier agent is not taken over; it is stopped if it lives. */
  engineNotAdopted(slot: SlotName, model: ModelId, reason: string): void;
  /** A sleeping engine is stopped because another one needs its memory. */
  sleeperEvicted(slot: SlotName, model: ModelId): void;
}
