/** Mean waits of simulated queues as multiples of the values that queueing theory gives for them. */
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { Simulation } from "../../src/simulate/engine/simulation.ts";
import type { TimedSlotOptions } from "../../src/simulate/engine/timed-slot.ts";
import { demandLoad } from "../../src/simulate/plan/demand-load.ts";

const limits: TimedSlotOptions["limits"] = {
  ...{ minResidencyMs: 0, drainOpenMsMax: 10_000, waitersMax: 1e6, waiterMsMax: Infinity },
  ...{ backoffMsMin: 0, backoffMsMax: 0, startMsMax: Infinity, stopMsMax: Infinity, whileSwitching: "hold" },
};

interface Queue {
  readonly models: readonly string[];
  readonly places: number;
  /** Of each model. */
  readonly perSecond: number;
  readonly serviceSeconds: number;
  /** The time from the stop of one engine until the next one is ready. */
  readonly switchSeconds: number;
  readonly drainOpenMsMax?: number;
}

interface Waited {
  readonly meanSeconds: number;
  /** What the requests had in the mean, which differs from the wanted values by chance. */
  readonly perSecond: number;
  readonly serviceSeconds: number;
}

/** Requests with exponential gaps and lengths. */
function run(queue: Queue, requests: number, seed: number): Waited {
  const { models, places, perSecond, serviceSeconds, switchSeconds, drainOpenMsMax = limits.drainOpenMsMax } = queue;
  const demand = { perSecond, inputTokens: 1, outputTokens: 1_000, accounts: 1 };
  const durationMs = (1_000 * requests) / (models.length * perSecond);
  const load = demandLoad(new Map(models.map((model) => [model, demand])), durationMs, seed);
  const engines = models.map((model) => ({
    ...{ model: asId<ModelId>(model), places, startMs: switchSeconds * 1_000, stopMs: 0 },
    ...{ prefillTokensPerSecond: Infinity, cacheTokens: Infinity },
    step: { baseMs: serviceSeconds, perRunningMs: 0, perTokenMs: 0 },
  }));
  const slot = {
    ...{ name: asId<SlotName>("a"), engines, awake: asId<ModelId>(models[0]!) },
    limits: { ...limits, drainOpenMsMax },
  };
  const nodes = [{ name: asId<NodeId>("node-1"), slots: [slot] }];
  const simulation = new Simulation({
    ...{ seed, load, durationMs, nodes, routers: 1, newsMs: 1, retryMs: [], isFair: true },
  });
  while (simulation.advance(100_000));
  const waits = models.map((model) => simulation.tally.of(model).wait);
  const count = waits.reduce((sum, wait) => sum + wait.count, 0);
  const [times] = simulation.nodes[0]!.slots.map(({ times: one }) => one);
  // Each prompt has a few tokens, which take no time.
  const tokens = [...times!.tokens.values()].reduce((sum, one) => sum + one, 0);
  return {
    meanSeconds: waits.reduce((sum, wait) => sum + wait.sumMs, 0) / 1_000 / count,
    perSecond: (1_000 * count) / models.length / durationMs,
    serviceSeconds: (serviceSeconds * (tokens - count * meanPromptTokens)) / count / 1_000,
  };
}

/** The ceiling of an exponential length with mean 1, as `demandLoad` makes it: 1 / (1 - 1/e). */
const meanPromptTokens = 1 / (1 - Math.exp(-1));

/**
 * One model on places that are used to a share of their time, compared with Erlang C for the rate and the lengths that the
 * requests have in this run. This takes away most of the chance: long queues come in runs with more work.
 */
export function erlangRatio(places: number, use: number, requests: number, seed: number): number {
  const queue = { models: ["m"], places, perSecond: (use * places) / 10, serviceSeconds: 10, switchSeconds: 0 };
  const { meanSeconds, perSecond, serviceSeconds } = run(queue, requests, seed);
  return meanSeconds / serviceSeconds / erlangC(places, (perSecond * serviceSeconds) / places);
}

/** The mean wait of M/M/c as a multiple of the mean service time. */
function erlangC(places: number, use: number): number {
  const offered = use * places;
  let [term, sum] = [1, 1];
  for (let busy = 1; busy < places; busy++) sum += term *= offered / busy;
  const all = (term * (offered / places)) / (1 - use);
  return all / (sum + all) / (places - offered);
}

/**
 * Two equal models on a slot with one place, compared with the pseudo-conservation law of polling systems (Boxma and
 * Groenendijk, 1987) for exhaustive service: the server stays until nobody waits for its model, and needs a fixed time
 * to switch.
 *
 * A drain without a limit is exhaustive service. In the law, the server goes on also to an empty queue, while a slot
 * keeps its model until another is asked for. Both are the same here, because about seven requests for the other model
 * come during each switch, so that its queue is empty in one of a thousand turns.
 */
export function pollingRatio(requests: number, seed: number): number {
  const [perSecond, serviceSeconds, switchSeconds] = [0.35, 1, 20];
  const queue = { models: ["a", "b"], places: 1, perSecond, serviceSeconds, switchSeconds, drainOpenMsMax: 1e12 };
  const met = run(queue, requests, seed);
  const each = met.perSecond * met.serviceSeconds;
  const use = 2 * each;
  const cycleSeconds = 2 * switchSeconds;
  const withoutSwitches = (2 * met.perSecond * 2 * met.serviceSeconds ** 2) / (2 * (1 - use));
  const expected =
    withoutSwitches + cycleSeconds / 2 + (cycleSeconds * (use ** 2 - 2 * each ** 2)) / (2 * use * (1 - use));
  return met.meanSeconds / expected;
}
