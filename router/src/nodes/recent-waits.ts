/**
 * How long requests recently waited for an inactive model, from the first waiter until a slot serves the model.
 * Measured from load reports, to about a second. The times are kept in memory, so a router that has just started knows
 * none.
 */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { serves } from "./model-state.ts";
import type { HostedSlot, SlotReport } from "./node-view.ts";

/** Number of waits kept for each model. Older waits do not help to predict the next. */
const keptMax = 5;
const keptMs = 24 * 3_600_000;
/** A bound on the models that nodes name. A catalogue has far fewer. */
const modelsMax = 10_000;

interface Wait {
  readonly endedAtMs: number;
  readonly tookMs: number;
}

export class RecentWaits {
  readonly #waits = new Map<ModelId, readonly Wait[]>();

  add(model: ModelId, tookMs: number, nowMs: number): void {
    if (!this.#waits.has(model) && this.#waits.size >= modelsMax) return;
    const wait = { endedAtMs: nowMs, tookMs };
    this.#waits.set(model, [...(this.#waits.get(model) ?? []), wait].slice(-keptMax));
  }

  /** Returns the median of the last five waits within a day. Undefined if there was none. */
  usualMs(model: ModelId, nowMs: number): number | undefined {
    const waits = (this.#waits.get(model) ?? []).filter(({ endedAtMs }) => nowMs - endedAtMs <= keptMs);
    return waits.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)[waits.length >> 1];
  }
}

/** The current waits of one node. */
export class WaitWatch {
  readonly #recent: RecentWaits;
  #sinceMs = new Map<string, number>();

  constructor(recent: RecentWaits) {
    this.#recent = recent;
  }

  /** Forgets the current waits. Call after a gap between reports, because a wait may have ended in the gap. */
  forget(): void {
    this.#sinceMs.clear();
  }

  /** `hosted` returns the models of a slot that the node may host, and its engines that serve several of them. */
  take(
    slots: readonly SlotReport[],
    hosted: (slot: SlotName) => Pick<HostedSlot, "models" | "engines">,
    nowMs: number,
  ): void {
    const before = this.#sinceMs;
    if (before.size === 0 && slots.every(({ waiters }) => waiters.length === 0)) return;
    this.#sinceMs = new Map();
    for (const slot of slots) {
      const waitedFor = new Set(slot.waiters.filter(({ waiting }) => waiting > 0).map((waiter) => waiter.model));
      const { models, engines } = hosted(slot.name);
      for (const model of models) {
        const key = `${slot.name} ${model}`;
        const sinceMs = before.get(key);
        if (serves({ ...slot, engines }, model)) {
          if (sinceMs !== undefined) this.#recent.add(model, nowMs - sinceMs, nowMs);
        } else if (waitedFor.has(model)) this.#sinceMs.set(key, sinceMs ?? nowMs);
      }
    }
  }
}
