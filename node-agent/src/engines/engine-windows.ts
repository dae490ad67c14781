/**
 * Reports awake engines that accept shorter requests than the catalogue promises, or fewer at once than their slots.
 */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { servedBy, type AwakeEngine, type EngineEndpoint } from "./engine.ts";

export interface EngineWindowEvents {
  /** Emitted once per ready engine and promised window. The smaller of the two applies. */
  engineWindow(slot: SlotName, model: ModelId, windowTokens: number, promisedTokens: number): void;
  /** Emitted once per ready engine whose `slots` share one context, so that only `used` of them are used. */
  engineSharesContext(slot: SlotName, model: ModelId, slots: number, used: number): void;
}

export class EngineWindows {
  readonly #events: EngineWindowEvents;
  readonly #sharing = new Map<SlotName, EngineEndpoint>();
  readonly #compared = new Map<SlotName, { readonly endpoint: EngineEndpoint; readonly promisedTokens: number }>();

  constructor(events: EngineWindowEvents) {
    this.#events = events;
  }

  compare(awake: readonly AwakeEngine[], rules: ReadonlyMap<ModelId, ModelRules>): void {
    for (const { slot, spec, endpoint } of awake) {
      this.#tellOfSharing(slot, spec.model, endpoint);
      const promisedTokens = promisedFor(servedBy(spec), rules);
      const before = this.#compared.get(slot);
      if (promisedTokens === undefined || endpoint.windowTokens === undefined) continue;
      if (before?.endpoint === endpoint && before.promisedTokens === promisedTokens) continue;
      this.#compared.set(slot, { endpoint, promisedTokens });
      this.#events.engineWindow(slot, spec.model, endpoint.windowTokens, promisedTokens);
    }
  }

  #tellOfSharing(slot: SlotName, model: ModelId, endpoint: EngineEndpoint): void {
    const { sharedSlots, parallelMax } = endpoint;
    if (sharedSlots === undefined || this.#sharing.get(slot) === endpoint) return;
    this.#sharing.set(slot, endpoint);
    this.#events.engineSharesContext(slot, model, sharedSlots, parallelMax!);
  }
}

/** Returns the longest promised window of the models. */
function promisedFor(models: readonly ModelId[], rules: ReadonlyMap<ModelId, ModelRules>): number | undefined {
  const all = models.map((model) => promised(rules.get(model))).filter((tokens) => tokens !== undefined);
  return all.length === 0 ? undefined : Math.max(...all);
}

function promised(rules: ModelRules | undefined): number | undefined {
  return rules?.embeddings?.inputTokens ?? rules?.contextTokens;
}
