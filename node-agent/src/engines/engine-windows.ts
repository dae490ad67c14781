/** Compares how long a request the awake engines take with what the catalogue promises of their models. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineEndpoint } from "./engine.ts";

export interface EngineWindowEvents {
  /** Once for each engine that was proven and each promise. The smaller one holds. */
  engineWindow(slot: SlotName, model: ModelId, windowTokens: number, promisedTokens: number): void;
}

interface Awake {
  readonly slot: SlotName;
  readonly spec: { readonly model: ModelId };
  readonly endpoint: EngineEndpoint;
}

export class EngineWindows {
  readonly #events: EngineWindowEvents;
  readonly #compared = new Map<SlotName, { readonly endpoint: EngineEndpoint; readonly promisedTokens: number }>();

  constructor(events: EngineWindowEvents) {
    this.#events = events;
  }

  /** Called when engines or rules have changed; an engine that does not say, and a model without rules, are passed over. */
  compare(awake: readonly Awake[], rules: ReadonlyMap<ModelId, ModelRules>): void {
    for (const { slot, spec, endpoint } of awake) {
      const promisedTokens = promised(rules.get(spec.model));
      const before = this.#compared.get(slot);
      if (promisedTokens === undefined || endpoint.windowTokens === undefined) continue;
      if (before?.endpoint === endpoint && before.promisedTokens === promisedTokens) continue;
      this.#compared.set(slot, { endpoint, promisedTokens });
      this.#events.engineWindow(slot, spec.model, endpoint.windowTokens, promisedTokens);
    }
  }
}

function promised(rules: ModelRules | undefined): number | undefined {
  return rules?.embeddings?.inputTokens ?? rules?.contextTokens;
}
