/** Makes nodes with slots of a plan. */
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import type { SimulationOptions } from "../engine/simulation.ts";
import type { TimedEngine, TimedSlotOptions } from "../engine/timed-slot.ts";
import type { Plan } from "./plan.ts";
import type { RawModel, RawRules } from "./plan-schema.ts";

/** A group of equal slots, with their number. */
export interface SizedGroup {
  readonly models: readonly string[];
  readonly slots: number;
}

export function nodesOf(plan: Plan, groups: readonly SizedGroup[]): SimulationOptions["nodes"] {
  const slots = groups.flatMap(({ models, slots: count }) =>
    Array.from({ length: count }, (_, index) => ({ models, awake: models[index % models.length]! })),
  );
  const { slotsPerNode } = plan;
  return Array.from({ length: Math.ceil(slots.length / slotsPerNode) }, (_, node) => ({
    name: asId<NodeId>(`node-${node + 1}`),
    slots: slots
      .slice(node * slotsPerNode, (node + 1) * slotsPerNode)
      .map(({ models, awake }, index): TimedSlotOptions => {
        const engines = models.map((model) => engineOf(model, plan.models[model]!));
        return { name: slotName(index), engines, limits: limitsOf(plan.rules), awake: asId<ModelId>(awake) };
      }),
  }));
}

/** `a` to `z`, then `slot-27` and so on. */
function slotName(index: number): SlotName {
  return asId<SlotName>(index < 26 ? String.fromCharCode(97 + index) : `slot-${index + 1}`);
}

export function engineOf(model: string, raw: RawModel): TimedEngine {
  const { places, startSeconds, stopSeconds, wakeSeconds, step, prefillTokensPerSecond, cacheTokens } = raw;
  const { baseMs, perRunningMs, perThousandTokensMs } = step;
  return {
    ...{ model: asId<ModelId>(model), places, prefillTokensPerSecond, cacheTokens: cacheTokens ?? Infinity },
    ...{ startMs: startSeconds * 1_000, stopMs: stopSeconds * 1_000 },
    wakeMs: wakeSeconds === undefined ? undefined : wakeSeconds * 1_000,
    step: { baseMs, perRunningMs, perTokenMs: perThousandTokensMs / 1_000 },
  };
}

/** No engine of a simulation fails, so that its deadlines and backoffs never matter. */
export function limitsOf(rules: RawRules): SlotLimits {
  return {
    minResidencyMs: rules.minResidencySeconds * 1_000,
    drainOpenMsMax: rules.drainOpenSeconds * 1_000,
    waitersMax: rules.waitersMax,
    waiterMsMax: rules.waiterSeconds * 1_000,
    whileSwitching: rules.whileSwitching as SlotLimits["whileSwitching"],
    ...{ startMsMax: Infinity, stopMsMax: Infinity, backoffMsMin: 0, backoffMsMax: 0 },
  };
}
