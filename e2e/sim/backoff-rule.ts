/** Computes, independently of the slot, when a model that failed may be started again. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";

export class BackoffRule {
  readonly #limits: SlotLimits;
  readonly #failures = new Map<ModelId, { readonly inARow: number; readonly notBeforeMs: number }>();
  /** How long each model has run since its last failure, over all its turns. */
  readonly #ranMs = new Map<ModelId, number>();

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  notBeforeMs(model: ModelId): number {
    return this.#failures.get(model)?.notBeforeMs ?? 0;
  }

  /** A first failure of an engine that ran, an exit or a suspicion, causes no pause. */
  failedRunning(model: ModelId, ranMs: number, nowMs: number): void {
    this.ran(model, ranMs);
    if (this.#failures.has(model)) return this.failed(model, 0, nowMs);
    this.#ranMs.delete(model);
    this.#failures.set(model, { inARow: 1, notBeforeMs: nowMs });
  }

  failed(model: ModelId, ranMs: number, nowMs: number): void {
    this.ran(model, ranMs);
    this.#ranMs.delete(model);
    const inARow = (this.#failures.get(model)?.inARow ?? 0) + 1;
    let pauseMs = this.#limits.backoffMsMin;
    for (let failure = 1; failure < inARow && pauseMs < this.#limits.backoffMsMax; failure++) pauseMs *= 2;
    this.#failures.set(model, { inARow, notBeforeMs: nowMs + Math.min(pauseMs, this.#limits.backoffMsMax) });
  }

  /** Runs without a fault that are long enough together reset the failures before them. */
  ran(model: ModelId, ranMs: number): void {
    const allMs = (this.#ranMs.get(model) ?? 0) + ranMs;
    this.#ranMs.set(model, allMs);
    if (allMs >= this.#limits.backoffMsMax) this.#failures.delete(model);
  }
}
