/**
 * Loads about whose waits a real agent and `weiche simulate` must agree. Each has a slot of its own. Turns are short, so
 * that half an hour has hundreds of them. The seeds are of loads that are not chaotic: in the simulation, switches that are
 * 3 % longer and requests that come 0.4 s late, as on a busy machine, move waits by up to 7 %, and refusals by 0.2 points.
 */
import { Measured } from "@weiche/router/src/simulate/engine/measured.ts";
import { Simulation } from "@weiche/router/src/simulate/engine/simulation.ts";
import type { LoadRequest } from "@weiche/router/src/simulate/load.ts";
import { planOf, type Plan } from "@weiche/router/src/simulate/plan/plan.ts";
import { loadOf } from "@weiche/router/src/simulate/plan/planned-load.ts";
import { trialOptions } from "@weiche/router/src/simulate/search/capacity.ts";

/** The engines on both sides. */
export const engine = {
  ...{ places: 8, sleepMs: 50, wakeMs: 3_000 },
  ...{ baseMs: 20, perRunningMs: 1, perThousandTokensMs: 2, prefillMsPerThousand: 20 },
};
/** An account may have so many requests at once, so a load has several accounts. */
export const accounts = 8;

const steadily = (perSecond: number) => ({ demand: { perSecond, inputTokens: 300, outputTokens: 80 } });
const inBursts = (perSecond: number) => ({ clients: { perSecond, like: "azure-chat", nightShare: 1 } });

interface ComparedLoad {
  readonly name: string;
  /** How each model is asked. */
  readonly models: Readonly<Record<string, object>>;
  readonly waitersMax: number;
  /** Determines the requests. */
  readonly seed: number;
}

export const comparedLoads: readonly ComparedLoad[] = [
  { name: "steady", models: { "steady-1": steadily(0.5), "steady-2": steadily(0.5) }, waitersMax: 64, seed: 1 },
  {
    ...{ name: "bursty", waitersMax: 8, seed: 2 },
    models: { "bursty-1": inBursts(0.11), "bursty-2": inBursts(0.11), "bursty-3": inBursts(0.11) },
  },
  { name: "rare", models: { "rare-1": steadily(1), "rare-2": steadily(0.04) }, waitersMax: 64, seed: 2 },
];

/** The plan that an operator would write, with the measured time of a switch. */
export function planOfLoad({ models, waitersMax, seed }: ComparedLoad, seconds: number, switchSeconds: number): Plan {
  const { places, baseMs, perRunningMs, perThousandTokensMs, prefillMsPerThousand } = engine;
  const plan = {
    models: Object.entries(models).map(([model, asked]) => ({
      ...{ model, places, startSeconds: switchSeconds, stopSeconds: 0, wakeSeconds: switchSeconds, ...asked },
      step: { baseMs, perRunningMs, perThousandTokensMs },
      prefillTokensPerSecond: 1_000_000 / prefillMsPerThousand,
    })),
    fleet: [{ models: Object.keys(models), slots: 1 }],
    rules: { waitersMax },
    ...{ hours: seconds / 3_600, seed, seeds: 1 },
  };
  return planOf(JSON.stringify(plan), "compared.yaml");
}

/** Before the load, each model is asked once, because engines and estimates are cold. */
const coldMs = 20_000;

export function requestsOf(plan: Plan): readonly LoadRequest[] {
  const models = Object.keys(plan.models);
  const first = models.toReversed().map((model, index): LoadRequest => {
    return { atMs: index * coldMs, account: "account-0", model, inputTokens: 20, outputTokens: 50 };
  });
  const load = Array.from(loadOf(plan).of(plan.seed), (request): LoadRequest => {
    const number = Number(/\d+$/.exec(request.account)![0]) % accounts;
    return { ...request, atMs: request.atMs + models.length * coldMs, account: `account-${number}` };
  });
  return [...first, ...load];
}

/** Runs the plan as `weiche simulate` does, with the same requests as the agent. */
export function simulate(plan: Plan): Measured {
  const groups = [{ models: Object.keys(plan.models), slots: 1 }];
  const simulation = new Simulation({
    ...trialOptions(plan, loadOf(plan), groups).optionsOf(plan.seed),
    load: requestsOf(plan),
  });
  while (simulation.advance(100_000));
  simulation.end();
  const measured = new Measured();
  measured.add(simulation);
  return measured;
}
