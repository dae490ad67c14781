/** Tells the restart of an engine that was lost from the start of one that was wanted, and why it was lost. */
import type { Counter } from "prom-client";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";

export type RestartReason =
  /** It ended by itself, awake or asleep. */
  | "exit"
  /** A request waited for it in vain. */
  | "silent"
  /** A request found nobody there. */
  | "refused"
  /** It did not prove itself, did not fall asleep, or did not wake as asked, and was stopped for it. */
  | "probe"
  | "sleep"
  | "wake"
  /** Its start before this one failed. */
  | "start";

const reasons: readonly RestartReason[] = ["exit", "silent", "refused", "probe", "sleep", "wake", "start"];

export class EngineRestarts {
  readonly #counter: Counter<"model" | "reason">;
  readonly #counts = new Map<string, number>();
  readonly #lost = new Map<string, RestartReason>();

  /** `models` begin with 0: the first restart is to be seen as a change. */
  constructor(counter: Counter<"model" | "reason">, models: Iterable<ModelId>) {
    this.#counter = counter;
    for (const model of models) for (const reason of reasons) counter.inc({ model, reason }, 0);
  }

  /** The first reason counts: what follows from it is no other. */
  lost(slot: SlotName, model: ModelId, reason: RestartReason): void {
    const key = keyOf(slot, model);
    if (!this.#lost.has(key)) this.#lost.set(key, reason);
  }

  /** It has proven itself; `isNew`: as another process than before. */
  ready(slot: SlotName, model: ModelId, isNew: boolean): void {
    const key = keyOf(slot, model);
    const reason = this.#lost.get(key);
    this.#lost.delete(key);
    if (!isNew || reason === undefined) return;
    this.#counter.inc({ model, reason });
    this.#counts.set(key, this.count(slot, model) + 1);
  }

  /** Since this agent started. */
  count(slot: SlotName, model: ModelId): number {
    return this.#counts.get(keyOf(slot, model)) ?? 0;
  }
}

function keyOf(slot: SlotName, model: ModelId): string {
  return `${slot} ${model}`;
}
