/** Counts restarts of lost engines by the reason of the loss. A requested start does not count. */
import type { Counter } from "prom-client";
import { beginAtZero } from "@weiche/shared/program/metric-registry.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";

/**
 * `exit`: the engine exited by itself. `silent`, `refused`: a request got no sign of life, or the engine did not
 * listen. `failing`: consecutive requests failed. `probe`, `sleep`, `wake`: this step failed, and the engine was
 * stopped. `start`: the previous start failed.
 */
const reasons = ["exit", "silent", "refused", "failing", "probe", "sleep", "wake", "start"] as const;
export type RestartReason = (typeof reasons)[number];

export class EngineRestarts {
  readonly #counter: Counter<"model" | "reason">;
  readonly #counts = new Map<string, number>();
  readonly #lost = new Map<string, RestartReason>();

  /** The series of `models` begin with 0, so that the first restart shows as an increase. */
  constructor(counter: Counter<"model" | "reason">, models: Iterable<ModelId>) {
    this.#counter = counter;
    beginAtZero(counter, { model: models, reason: reasons });
  }

  /** Only the first reason counts, because later ones are its consequences. */
  lost(slot: SlotName, model: ModelId, reason: RestartReason): void {
    const key = keyOf(slot, model);
    if (!this.#lost.has(key)) this.#lost.set(key, reason);
  }

  /** The engine has answered its probe. `isNew`: it is another process than before. */
  ready(slot: SlotName, model: ModelId, isNew: boolean): void {
    const key = keyOf(slot, model);
    const reason = this.#lost.get(key);
    this.#lost.delete(key);
    if (!isNew || reason === undefined) return;
    this.#counter.inc({ model, reason });
    this.#counts.set(key, this.count(slot, model) + 1);
  }

  /** Returns the number of restarts since this agent started. */
  count(slot: SlotName, model: ModelId): number {
    return this.#counts.get(keyOf(slot, model)) ?? 0;
  }
}

function keyOf(slot: SlotName, model: ModelId): string {
  return `${slot} ${model}`;
}
