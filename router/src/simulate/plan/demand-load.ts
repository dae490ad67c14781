/** The load of a plan's demands: independent requests at random times, with exponential lengths. */
import { createRandom, type Random } from "@weiche/shared/testing/random.ts";
import type { Load, LoadRequest } from "../load.ts";
import type { RawModel } from "./plan-schema.ts";

type Demand = NonNullable<RawModel["demand"]>;

export function demandLoad(demands: ReadonlyMap<string, Demand>, durationMs: number, seed: number): Load {
  return {
    *[Symbol.iterator]() {
      const streams = Array.from(demands, ([model, demand], index) =>
        requestsOf(model, demand, createRandom(seed * 7_919 + index)),
      );
      const next = streams.map((stream) => stream.next().value);
      for (;;) {
        let first = 0;
        for (let index = 1; index < next.length; index++) if (next[index]!.atMs < next[first]!.atMs) first = index;
        const request = next[first]!;
        if (request.atMs >= durationMs) return;
        yield request;
        next[first] = streams[first]!.next().value;
      }
    },
  };
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

function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random.next());
}
