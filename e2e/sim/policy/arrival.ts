/** A request of a load, and the engines on which the benches of policies run it. */
import { asId, type AccountId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import type { transition } from "@weiche/node-agent/src/slots/slot.ts";
import type { TimedSlotOptions } from "@weiche/router/src/simulate/engine/timed-slot.ts";

/** A request of the load. */
export interface Arrival {
  readonly atMs: number;
  readonly model: ModelId;
  readonly account: AccountId;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The speed of one answer and of its prompt, in tokens a second. */
export const tokensPerSecond = { prompt: 5_000, completion: 40 };

export interface PolicyOptions {
  readonly models: readonly ModelId[];
  readonly places: number;
  /** The time from the stop of one engine until the next one is ready. */
  readonly switchMs: number;
  readonly limits: SlotLimits;
  readonly transition: typeof transition;
}

/** Returns the simulator's slot for these options. Answers do not slow each other. */
export function policySlot({ models, places, switchMs, limits, transition }: PolicyOptions): TimedSlotOptions {
  const step = { baseMs: 1_000 / tokensPerSecond.completion, perRunningMs: 0, perTokenMs: 0 };
  return {
    ...{ name: asId<SlotName>("a"), limits, transition },
    engines: models.map((model) => ({
      ...{ model, places, step, startMs: switchMs, stopMs: 0 },
      ...{ prefillTokensPerSecond: tokensPerSecond.prompt, cacheTokens: Infinity },
    })),
  };
}
