/** How a slot spends its time: with which model active, in drains, in switches, and how often it switches. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { SlotState } from "@weiche/node-agent/src/slots/slot-state.ts";
import { activeOf } from "@weiche/node-agent/src/slots/slot-view.ts";

export class SlotTimes {
  /** Time for which each model was active, including its drains. */
  readonly activeMs = new Map<ModelId, number>();
  /** Number of starts of each model after another model, which are switches. */
  readonly switches = new Map<ModelId, number>();
  /** The number of starts of engines. */
  starts = 0;
  /** The sum of the waits of all requests that were admitted. */
  waitedMs = 0;
  /** Tokens of prompts and answers of all requests that were served, by model. */
  readonly tokens = new Map<ModelId, number>();
  drainMs = 0;
  /** Time for stops and starts of engines. */
  switchMs = 0;
  /** Called for each time that the slot has spent in one state. */
  onSpan: ((state: SlotState, fromMs: number, untilMs: number) => void) | undefined;
  #sinceMs: number;
  #last: ModelId | undefined;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  moved(before: SlotState, after: SlotState, nowMs: number): void {
    if (before === after) return;
    this.count(before, nowMs);
    // A slot may begin with a model that it adopts.
    if (after.kind === "active") this.#last = activeOf(after);
    if (after.kind !== "starting" || before.kind === "starting") return;
    this.starts++;
    if (this.#last !== undefined && this.#last !== after.model)
      this.switches.set(after.model, (this.switches.get(after.model) ?? 0) + 1);
    this.#last = after.model;
  }

  /** Adds the time until now to the state. */
  count(state: SlotState, nowMs: number): void {
    const tookMs = nowMs - this.#sinceMs;
    if (tookMs > 0) this.onSpan?.(state, this.#sinceMs, nowMs);
    this.#sinceMs = nowMs;
    if (state.kind === "draining") this.drainMs += tookMs;
    if (state.kind === "starting" || state.kind === "stopping") this.switchMs += tookMs;
    if (state.kind !== "active" && state.kind !== "draining") return;
    const model = activeOf(state)!;
    this.activeMs.set(model, (this.activeMs.get(model) ?? 0) + tookMs);
  }
}
