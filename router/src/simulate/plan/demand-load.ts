/** The load of a plan's demands: independent requests at random times, with exponential lengths. */
import { createRandom, type Random } from "@weiche/shared/random.ts";
import type { Load, LoadRequest } from "../load.ts";
import { firstPart } from "../loads/changes.ts";
import { exponential } from "../loads/draws.ts";
import { merged } from "../loads/merged.ts";
import type { RawModel } from "./plan-schema.ts";

type Demand = NonNullable<RawModel["demand"]>;

export function demandLoad(demands: ReadonlyMap<string, Demand>, durationMs: number, seed: number): Load {
  const endless = Array.from(demands, ([model, demand], index) => ({
    [Symbol.iterator]: () => requestsOf(model, demand, createRandom(seed * 7_919 + index)),
  }));
  return firstPart(merged(endless), durationMs);
}

function* requestsOf(model: string, demand: Demand, random: Random): Generator<LoadRequest, never> {
  const { perSecond, inputTokens, outputTokens, accounts } = demand;
  for (let atMs = 0; ;) {
    atMs += exponential(random, 1_000 / perSecond);
    yield {
      ...{ atMs, model, account: `account-${random.below(accounts)}` },
      inputTokens: Math.ceil(exponential(random, inputTokens)),
      outputTokens: Math.ceil(exponential(random, outputTokens)),
    };
  }
}
