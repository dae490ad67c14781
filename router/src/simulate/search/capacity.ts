/** Answers a plan: the lower bound, then the least number of slots or the fleet as it is planned. */
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { SimulationOptions } from "../engine/simulation.ts";
import type { Load } from "../load.ts";
import { engineOf, nodesOf, type SizedGroup } from "../plan/fleet.ts";
import { failuresOf } from "../plan/node-failure.ts";
import type { Plan } from "../plan/plan.ts";
import { slotsMax } from "../plan/plan-schema.ts";
import type { PlannedLoad } from "../plan/planned-load.ts";
import { leastSlots } from "./least-slots.ts";
import { Asked, boundOf, slotsAtLeast, type ModelBound } from "./lower-bound.ts";
import { tryFleet, type Trial } from "./trial.ts";

export interface Bounds {
  readonly models: readonly ModelBound[];
  /** In the order of the plan's groups. */
  readonly groups: readonly number[];
}

export interface Capacity {
  readonly bounds: Bounds;
  /** Undefined if it was stopped before any fleet was measured. */
  readonly trial: Trial | undefined;
  /** The trial with one slot less in the only group. */
  readonly below: Trial | undefined;
  /** Whether the run was stopped before the answer was found. */
  readonly isStopped: boolean;
}

/** A trial in progress, for the progress bar. */
export interface Step {
  readonly groups: readonly SizedGroup[];
  readonly share: number;
}

/** Reads the load once. Throws `StartError` if nothing can be simulated. */
export function boundsOf(plan: Plan, { durationMs, of }: PlannedLoad): Bounds {
  const asked = new Map(Object.keys(plan.models).map((model) => [model, new Asked()]));
  for (const request of of(plan.seed)) asked.get(request.model)!.add(request);
  const models = Array.from(asked, ([model, its]) =>
    boundOf(model, its, engineOf(model, plan.models[model]!), durationMs),
  );
  if (models.every((each) => each.perSecond === 0))
    throw new StartError("no request is left to simulate: correct the load of the plan, --days or --what-if");
  const groups = plan.fleet.map((group) => slotsAtLeast(models.filter(({ model }) => group.models.includes(model))));
  const slots = groups.reduce((sum, count) => sum + count, 0);
  if (slots > slotsMax)
    throw new StartError(
      `the load needs at least ${slots} slots, and at most ${slotsMax} can be simulated: correct its requests and tokens, or the speed of the engines`,
    );
  return { models, groups };
}

type OnStep = (step: Step) => Promise<boolean>;

/** Runs fleets of a plan, and remembers the last one. `onStep` resolves with whether to continue. */
export class FleetTrials {
  /** The last fleet that was measured, or a part of the first one if nothing else was. */
  latest: Trial | undefined;
  readonly #plan: Plan;
  readonly #load: PlannedLoad;
  readonly #onStep: OnStep;

  constructor(plan: Plan, load: PlannedLoad, onStep: OnStep) {
    this.#plan = plan;
    this.#load = load;
    this.#onStep = onStep;
  }

  /** Returns undefined if it was stopped. */
  async run(groups: readonly SizedGroup[], isWhole = false): Promise<Trial | undefined> {
    const options = { ...trialOptions(this.#plan, this.#load, groups), isWhole };
    const trial = await tryFleet(options, { goOn: (share) => this.#onStep({ groups, share }) });
    if (trial.doneShare < 1) {
      this.latest ??= trial;
      return undefined;
    }
    this.latest = trial;
    return trial;
  }

  /** Searches for the least number of slots for these models. Returns undefined if it was stopped. */
  least(models: readonly string[], atLeast: number): ReturnType<typeof leastSlots> {
    return leastSlots(atLeast, slotsMost(atLeast, models.length), (slots) => this.run([{ models, slots }]));
  }
}

/**
 * Searches for the least number of slots of each group without a number, and runs the whole fleet. Without goals, such a
 * group gets its lower bound.
 */
export async function findCapacity(plan: Plan, load: PlannedLoad, bounds: Bounds, onStep: OnStep): Promise<Capacity> {
  const trials = new FleetTrials(plan, load, onStep);
  const sized: SizedGroup[] = [];
  for (const [index, { models, slots }] of plan.fleet.entries()) {
    if (slots !== undefined || plan.parsedGoals.length === 0) {
      sized.push({ models, slots: slots ?? bounds.groups[index]! });
      continue;
    }
    const least = await trials.least(models, bounds.groups[index]!);
    if (!least) return { bounds, trial: trials.latest, below: undefined, isStopped: true };
    sized.push(least.best.groups[0]!);
    if (plan.fleet.length === 1) return { bounds, trial: least.best, below: least.below, isStopped: false };
  }
  const trial = await trials.run(sized);
  return { bounds, trial: trial ?? trials.latest, below: undefined, isStopped: trial === undefined };
}

/** More slots than this hardly shorten a wait: the bound is far exceeded, and each model has slots of its own. */
function slotsMost(atLeast: number, models: number): number {
  return 2 * atLeast + 2 * models + 8;
}

export function trialOptions(plan: Plan, load: PlannedLoad, groups: readonly SizedGroup[]) {
  const served = new Set(groups.flatMap(({ models }) => models));
  const goals = plan.parsedGoals.filter(({ model }) => model === undefined || served.has(model));
  const optionsOf = (seed: number): SimulationOptions => ({
    ...{ seed, durationMs: load.durationMs, load: only(served, load.of(seed), plan) },
    ...{ nodes: nodesOf(plan, groups), failures: failuresOf(plan.failures, load.startsAtMs) },
    ...{ routers: plan.routers, newsMs: plan.reportDelayMs, isFair: plan.rules.fairness },
    limits: plan.limits && { perMinute: plan.limits.requestsPerMinute, parallel: plan.limits.parallelRequests },
    retryMs: plan.retrySeconds.map((seconds) => seconds * 1_000),
  });
  return { groups, goals, optionsOf, seeds: Array.from({ length: plan.seeds }, (_, index) => plan.seed + index) };
}

/** Groups share no model, so each is searched with its own requests. */
function only(served: ReadonlySet<string>, load: Load, { models }: Plan): Load {
  if (Object.keys(models).every((model) => served.has(model))) return load;
  return {
    *[Symbol.iterator]() {
      for (const request of load) if (served.has(request.model)) yield request;
    },
  };
}
