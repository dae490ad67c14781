/** Tells where awake engines take less than one would think: shorter requests than the catalogue promises, or fewer. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineEndpoint } from "./engine.ts";

export interface EngineWindowEvents {
  /** Once for each engine that was proven and each promise. The smaller one holds. */
  engineWindow(slot: SlotName, model: ModelId, windowTokens: number, promisedTokens: number): void;
  /** Once for each engine that was proven: its slots share one context, so that only `used` of them are used. */
  engineSharesContext(slot: SlotName, model: ModelId, slots: number, used: number): void;
}

interface Awake {
  readonly slot: SlotName;
  readonly spec: { readonly model: ModelId };
  readonly endpoint: EngineEndpoint;
}

export class EngineWindows {
  readonly #events: EngineWindowEvents;
  readonly #sharing = new Map<SlotName, EngineEndpoint>();
  readonly #compared = new Map<SlotName, { readonly endpoint: EngineEndpoint; readonly promisedTokens: number }>();

  constructor(events: EngineWindowEvents) {
    this.#events = events;
  }

  /** Called when engines or rules have changed; an engine that does not say, and a model without rules, are passed over. */
  compare(awake: readonly Awake[], rules: ReadonlyMap<ModelId, ModelRules>): void {
    for (const { slot, spec, endpoint } of awake) {
      this.#tellOfSharing(slot, spec.model, endpoint);
      const promisedTokens = promised(rules.get(spec.model));
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

function promised(rules: ModelRules | undefined): number | undefined {
  return rules?.embeddings?.inputTokens ?? rules?.contextTokens;
}
