/** The options of a slot's engines, and the events that matter to an operator. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineSpec, ExitReport } from "./engine.ts";
import type { EngineHost } from "./running-engine.ts";
import type { SlotMemory } from "./slot-memory.ts";

export interface SlotEnginesOptions {
  readonly slot: SlotName;
  readonly engines: readonly EngineSpec[];
  readonly host: EngineHost;
  readonly memory: SlotMemory;
  readonly events: SlotEngineEvents;
  /** Resolves when engines of slots that are no longer configured are gone. Until then they may hold GPU memory. */
  readonly forgotten?: Promise<unknown> | undefined;
}

export interface SlotEngineEvents {
  /** The engine is ready. `how`: newly started, woken, adopted from an earlier agent, or only probed. */
  engineReady(slot: SlotName, model: ModelId, how: "started" | "woken" | "adopted" | "probed", tookMs: number): void;
  engineAsleep(slot: SlotName, model: ModelId, tookMs: number): void;
  engineStopped(slot: SlotName, model: ModelId): void;
  /** A sleep, wake, probe or stop failed. The engine is then stopped, unless the stop itself failed. */
  engineSurprised(slot: SlotName, model: ModelId, what: "sleep" | "wake" | "probe" | "stop", reason: string): void;
  /** Last output lines of an engine whose start failed. For the log only. */
  engineSaid(slot: SlotName, model: ModelId, lastLines: readonly string[]): void;
  /** A sleeping engine exited. The exit of an awake one is an event of the slot. */
  sleeperExited(slot: SlotName, model: ModelId, report: ExitReport): void;
  /** An engine of an earlier agent is not adopted. It is stopped if it still runs. */
  engineNotAdopted(slot: SlotName, model: ModelId, reason: string): void;
  sleeperEvicted(slot: SlotName, model: ModelId): void;
}
