/** Stores switches and failed starts of the last hour, for operators who inspect a slot. */
import type { MonotonicClock } from "@weiche/shared/time/clock.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { pastSwitchesMax } from "@weiche/shared/wire/link-bounds.ts";
import type { SwitchReport } from "./switch-meter.ts";

/** An entry without a report is a failed start. */
export interface PastSwitch {
  /** Monotonic ms. */
  readonly endedAtMs: number;
  readonly model: ModelId;
  readonly report?: SwitchReport;
}

const keptMs = 3_600_000;

export class SwitchHistory {
  readonly #clock: MonotonicClock;
  #all: ReadonlyMap<SlotName, readonly PastSwitch[]> = new Map();

  constructor(clock: MonotonicClock) {
    this.#clock = clock;
  }

  switched(slot: SlotName, report: SwitchReport): void {
    this.#add(slot, { endedAtMs: this.#clock.monotonicMs(), model: report.model, report });
  }

  startFailed(slot: SlotName, model: ModelId): void {
    this.#add(slot, { endedAtMs: this.#clock.monotonicMs(), model });
  }

  /**
   * Entries of each slot, the oldest first. A slot's array is replaced only when an entry is added, so it may contain
   * entries older than an hour.
   */
  get all(): ReadonlyMap<SlotName, readonly PastSwitch[]> {
    return this.#all;
  }

  #add(slot: SlotName, past: PastSwitch): void {
    const young = (this.#all.get(slot) ?? []).filter(({ endedAtMs }) => past.endedAtMs - endedAtMs <= keptMs);
    this.#all = new Map(this.#all).set(slot, [...young, past].slice(-pastSwitchesMax));
  }
}
