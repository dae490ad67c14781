/** Searches for the grouping of models on slots that needs the least slots. */
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { SizedGroup } from "../plan/fleet.ts";
import type { Plan } from "../plan/plan.ts";
import type { PlannedLoad } from "../plan/planned-load.ts";
import { FleetTrials, type Bounds, type Capacity, type Step } from "./capacity.ts";
import { groupingsOf, type Grouping } from "./groupings.ts";
import { slotsAtLeast } from "./lower-bound.ts";
import { Measured } from "../engine/measured.ts";

/** A grouping with the least number of slots for each group. */
export interface SizedGrouping {
  readonly groups: readonly SizedGroup[];
  readonly slots: number;
  readonly isMet: boolean;
  /** The groups together. */
  readonly measured: Measured;
}

interface GroupedCapacity extends Capacity {
  /** The best first. */
  readonly groupings: readonly SizedGrouping[];
}

/** `onStep` resolves with whether to continue. Throws `StartError` if the plan has no goals to compare by. */
export async function findGrouping(
  plan: Plan,
  load: PlannedLoad,
  bounds: Bounds,
  onStep: (step: Step) => Promise<boolean>,
): Promise<GroupedCapacity> {
  const trials = new FleetTrials(plan, load, onStep);
  const search = new GroupSearch(trials, bounds);
  const groupings: SizedGrouping[] = [];
  const ranked = () => groupings.toSorted(compare);
  for (const grouping of groupingsOf(bounds.models, (models) => fitsSlot(plan, models))) {
    const sized = await search.size(grouping);
    if (!sized) return { bounds, trial: trials.latest, below: undefined, isStopped: true, groupings: ranked() };
    groupings.push(sized);
  }
  const [best] = ranked();
  const trial = await trials.run(best!.groups, true);
  const boundsOfBest = { ...bounds, groups: best!.groups.map(({ models }) => search.atLeast(models)) };
  return {
    ...{ bounds: boundsOfBest, trial: trial ?? trials.latest, below: undefined },
    ...{ isStopped: trial === undefined, groupings: ranked() },
  };
}

export function requireGoals({ parsedGoals }: Plan): void {
  if (parsedGoals.length > 0) return;
  throw new StartError(
    '--grouping compares least numbers of slots, so it needs a goal, such as --goal "wait.p99<=30s"',
  );
}

/** Groups of different groupings are often the same, so each is measured once. */
class GroupSearch {
  readonly #trials: FleetTrials;
  readonly #bounds: Bounds;
  readonly #known = new Map<string, NonNullable<Awaited<ReturnType<FleetTrials["least"]>>>>();

  constructor(trials: FleetTrials, bounds: Bounds) {
    this.#trials = trials;
    this.#bounds = bounds;
  }

  atLeast(models: readonly string[]): number {
    return slotsAtLeast(this.#bounds.models.filter(({ model }) => models.includes(model)));
  }

  /** Returns undefined if it was stopped. */
  async size(grouping: Grouping): Promise<SizedGrouping | undefined> {
    const groups: SizedGroup[] = [];
    const measured = new Measured();
    let isMet = true;
    for (const models of grouping) {
      const key = JSON.stringify(models);
      const least = this.#known.get(key) ?? (await this.#trials.least(models, this.atLeast(models)));
      if (!least) return undefined;
      this.#known.set(key, least);
      groups.push(...least.best.groups);
      measured.addAllOf(least.best.measured);
      isMet &&= least.best.isMet;
    }
    return { groups, slots: groups.reduce((sum, group) => sum + group.slots, 0), isMet, measured };
  }
}

function compare(a: SizedGrouping, b: SizedGrouping): number {
  const waitMs = ({ measured }: SizedGrouping) => measured.all.wait.quantileMs(0.99);
  return Number(b.isMet) - Number(a.isMet) || a.slots - b.slots || waitMs(a) - waitMs(b);
}

/** Each model must fit beside the memory that the sleeping engines of the others keep. */
function fitsSlot({ models: plans, slotGiB = Infinity }: Plan, models: readonly string[]): boolean {
  const asleepOf = (model: string) => plans[model]!.asleepGiB ?? 0;
  const asleep = models.reduce((sum, model) => sum + asleepOf(model), 0);
  return models.every((model) => (plans[model]!.activeGiB ?? 0) + asleep - asleepOf(model) <= slotGiB);
}
