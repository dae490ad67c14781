/**
 * How long requests waited lately for a model that was not active, from the first waiter to the slot that serves it. Read
 * from load reports, so to about a second. In memory: a router that has just started knows nothing.
 */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { serves } from "./model-state.ts";
import type { HostedSlot, SlotReport } from "./node-view.ts";

/** Number of waits that are kept for each model; older ones say little about the next wait. */
const keptMax = 5;
const keptMs = 24 * 3_600_000;
/** Nodes name models; a catalogue has far fewer. */
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

  /** The median of the last five within a day. undefined: nobody has waited. */
  usualMs(model: ModelId, nowMs: number): number | undefined {
    const waits = (this.#waits.get(model) ?? []).filter(({ endedAtMs }) => nowMs - endedAtMs <= keptMs);
    return waits.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)[waits.length >> 1];
  }
}

/** The waits of one node that go on. */
export class WaitWatch {
  readonly #recent: RecentWaits;
  #sinceMs = new Map<string, number>();

  constructor(recent: RecentWaits) {
    this.#recent = recent;
  }

  /** Forgets the waits that go on. Call after a gap between reports, since a wait may have ended in it. */
  forget(): void {
    this.#sinceMs.clear();
  }

  /** `hosted`: the models of a slot that the node is believed to host, and which of them an engine serves together. */
  take(
    slots: readonly SlotReport[],
    hosted: (slot: SlotName) => Pick<HostedSlot, "models" | "engines">,
    nowMs: number,
  ): void {
    const before = this.#sinceMs;
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
