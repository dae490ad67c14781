/**
 * Ways to put models on groups of slots, the most promising first. Models of one group take turns on its slots. A
 * grouping is judged by its lower bound, then by how often two models of one group are asked for at the same time.
 */
import { demandOf, slotsAtLeast, type ModelBound } from "./lower-bound.ts";

export type Grouping = readonly (readonly string[])[];

/** Up to so many models every grouping is looked at: 4,140 for eight models. */
const everyMax = 8;
/** The number of groupings that are simulated. */
const simulatedMax = 20;

type Group = readonly ModelBound[];

/** `fits` returns whether the memory of a slot suffices for all of these models. It does for each model alone. */
export function groupingsOf(
  models: readonly ModelBound[],
  fits: (models: readonly string[]) => boolean,
): readonly Grouping[] {
  const isFitting = (group: Group) => fits(namesOf(group));
  const all = models.length <= everyMax ? [...everyGrouping(models, [], isFitting)] : merging(models, isFitting);
  const ranked = all.map((groups) => ({ groups, cost: sumOf(groups) }));
  ranked.sort((a, b) => compare(a.cost, b.cost));
  return ranked.slice(0, simulatedMax).map(({ groups }) => groups.map(namesOf));
}

function namesOf(group: Group): readonly string[] {
  return group.map(({ model }) => model);
}

function* everyGrouping(
  [model, ...rest]: readonly ModelBound[],
  groups: readonly Group[],
  fits: (group: Group) => boolean,
): Generator<readonly Group[]> {
  if (!model) return yield groups;
  for (const [index, group] of groups.entries()) {
    const joined = [...group, model];
    if (fits(joined)) yield* everyGrouping(rest, groups.with(index, joined), fits);
  }
  yield* everyGrouping(rest, [...groups, [model]], fits);
}

/** Begins with a group for each model, and joins the two groups that hurt least, until none fit together. */
function merging(models: readonly ModelBound[], fits: (group: Group) => boolean): readonly (readonly Group[])[] {
  const all: (readonly Group[])[] = [];
  let groups: readonly Group[] | undefined = models.map((model) => [model]);
  while (groups) {
    all.push(groups);
    groups = joinedBest(groups, fits);
  }
  return all;
}

function joinedBest(groups: readonly Group[], fits: (group: Group) => boolean): readonly Group[] | undefined {
  let best: { readonly groups: readonly Group[]; readonly cost: Cost } | undefined;
  for (const [index, one] of groups.entries())
    for (const other of groups.slice(index + 1)) {
      const both = [...one, ...other];
      if (!fits(both)) continue;
      const joined = [...groups.filter((group) => group !== one && group !== other), both];
      const cost = sumOf(joined);
      if (!best || compare(cost, best.cost) < 0) best = { groups: joined, cost };
    }
  return best?.groups;
}

interface Cost {
  /** The lower bound of all groups together. */
  readonly slots: number;
  /** The sum of the products of demands within groups. */
  readonly collisions: number;
}

function sumOf(groups: readonly Group[]): Cost {
  let [slots, collisions] = [0, 0];
  for (const group of groups) {
    const demands = group.map(demandOf);
    const sum = demands.reduce((total, demand) => total + demand, 0);
    const squares = demands.reduce((total, demand) => total + demand ** 2, 0);
    slots += slotsAtLeast(group);
    collisions += (sum ** 2 - squares) / 2;
  }
  return { slots, collisions };
}

function compare(a: Cost, b: Cost): number {
  return a.slots - b.slots || a.collisions - b.collisions;
}
