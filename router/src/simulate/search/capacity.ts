/** Answers a plan: the lower bound, then the least number of slots or the fleet as it is planned. */
import type { SimulationOptions } from "../engine/simulation.ts";
import type { Load } from "../load.ts";
import { engineOf, nodesOf, type SizedGroup } from "../plan/fleet.ts";
import { failuresOf } from "../plan/node-failure.ts";
import type { Plan } from "../plan/plan.ts";
import type { PlannedLoad } from "../plan/planned-load.ts";
import { leastSlots } from "./least-slots.ts";
import { Asked, boundOf, slotsAtLeast, type ModelBound } from "./lower-bound.ts";
import { tryFleet, type Control, type Trial } from "./trial.ts";

interface Bounds {
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

/** Reads the load once. */
export function boundsOf(plan: Plan, { durationMs, of }: PlannedLoad): Bounds {
  const asked = new Map(Object.keys(plan.models).map((model) => [model, new Asked()]));
  for (const request of of(plan.seed)) asked.get(request.model)!.add(request);
  const models = Array.from(asked, ([model, its]) =>
    boundOf(model, its, engineOf(model, plan.models[model]!), durationMs),
  );
  const groups = plan.fleet.map((group) => slotsAtLeast(models.filter(({ model }) => group.models.includes(model))));
  return { models, groups };
}

/** `onStep` resolves with whether to continue. */
export async function findCapacity(
  plan: Plan,
  load: PlannedLoad,
  bounds: Bounds,
  onStep: (step: Step) => Promise<boolean>,
): Promise<Capacity> {
  let latest: Trial | undefined;
  const attempt = async (groups: readonly SizedGroup[]) => {
    const control: Control = { goOn: (share) => onStep({ groups, share }) };
    const trial = await tryFleet(trialOptions(plan, load, groups), control);
    if (trial) latest = trial;
    return trial;
  };
  const sized: SizedGroup[] = [];
  let below: Trial | undefined;
  for (const [index, { models, slots }] of plan.fleet.entries()) {
    if (slots !== undefined) {
      sized.push({ models, slots });
      continue;
    }
    const atLeast = bounds.groups[index]!;
    const least = await leastSlots(atLeast, slotsMost(atLeast, models.length), (count) =>
      attempt([{ models, slots: count }]),
    );
    if (!least) return { bounds, trial: latest, below: undefined, isStopped: true };
    sized.push(least.best.groups[0]!);
    if (plan.fleet.length === 1) return { bounds, trial: least.best, below: least.below, isStopped: false };
    below = undefined;
  }
  const trial = await attempt(sized);
  return { bounds, trial: trial ?? latest, below, isStopped: trial === undefined };
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
