/** Loads for several slots that share models. */
import { createRandom } from "@weiche/shared/random.ts";
import { asId, type AccountId, type ModelId } from "@weiche/shared/ids.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";
import type { Strategy } from "../placement-strategies.ts";
import { runFleet } from "./fleet-run.ts";
import { chatSizes, clients, dayMs, poisson, readServegen, type Shares } from "./loads.ts";
import { policies } from "./policies.ts";
import type { Arrival } from "./arrival.ts";

export interface FleetScenario {
  readonly name: string;
  readonly slots: number;
  readonly hours: number;
  readonly switchSeconds: number;
  readonly load: (seed: number) => readonly Arrival[];
}

/** With three routers, each sees most requests only in reports. */
const routers = 3;
const places = 16;

export function fleetScenarios(folder: string | undefined): readonly FleetScenario[] {
  const loads = [...traced(folder ?? ""), ...generated()];
  const slow = loads.filter(({ slots, name }) => slots < 30 && !name.includes("busy"));
  return [
    ...loads.map((one) => ({ ...one, switchSeconds: 10 })),
    ...slow.map((one) => ({ ...one, switchSeconds: 30 })),
  ];
}

/** Loads in which one answer of a hundred takes 300 s. */
export function longScenarios(): readonly FleetScenario[] {
  const hours = [4, 2, 0.5];
  return [2, 4, 30].map((slots, index) => ({
    ...{ name: "clients, 1 % of 300 s", slots, hours: hours[index]!, switchSeconds: 10 },
    load: (seed) => {
      const random = createRandom(seed + 1_000);
      return within(hours[index]!, clientsOf(2 * slots, 0.2 * slots)(seed)).map((one) =>
        random.chance(0.01) ? { ...one, completionTokens: 12_000 } : one,
      );
    },
  }));
}

type Load = Omit<FleetScenario, "switchSeconds">;

function generated(): readonly Load[] {
  const busy = (perSecond: number, others: number, share: number): FleetScenario["load"] => {
    const rest = Array.from({ length: others }, (_, index) => [`m${index}`, (1 - share) / others] as const);
    const models = { busy: share, ...Object.fromEntries(rest) };
    return (seed) => poisson({ perSecond, models, sizes: chatSizes, random: createRandom(seed) });
  };
  const loads: readonly Load[] = [
    { name: "clients, 4 models, 0.8/s", slots: 2, hours: 4, load: clientsOf(4, 0.8) },
    { name: "one busy model of 3, 2/s", slots: 2, hours: 2, load: busy(2, 2, 0.7) },
    { name: "clients, 8 models, 1.6/s", slots: 4, hours: 3, load: clientsOf(8, 1.6) },
    { name: "one busy model of 6, 4/s", slots: 4, hours: 1, load: busy(4, 5, 0.6) },
    { name: "clients, 60 models, 9/s", slots: 30, hours: 0.5, load: clientsOf(60, 9) },
  ];
  return loads.map((one) => ({ ...one, load: (seed) => within(one.hours, one.load(seed)) }));
}

/** ServeGen's days in parallel, each from another hour on, with separate models. */
function traced(folder: string): readonly Load[] {
  const days = ["servegen-day5-0.25", "servegen-day9-0.25"].map((name) => readServegen(folder, name));
  if (days.some((day) => day === undefined)) return [];
  const beside = (slots: number, hours: number): Load => ({
    ...{ name: `ServeGen, ${3 * slots} models`, slots, hours },
    load: () => within(hours, copies(days as readonly (readonly Arrival[])[], slots)),
  });
  return [beside(2, 6), beside(4, 4), beside(30, 0.5)];
}

function copies(days: readonly (readonly Arrival[])[], count: number): Arrival[] {
  return Array.from({ length: count }, (_, copy) =>
    days[copy % days.length]!.map((one) => ({
      ...one,
      atMs: (one.atMs + (copy * dayMs) / count) % dayMs,
      model: asId<ModelId>(`${one.model}-${copy}`),
      account: asId<AccountId>(`${one.account}-${copy}`),
    })),
  )
    .flat()
    .sort((a, b) => a.atMs - b.atMs);
}

/** Models of unequal demand: the second has half the demand of the first, the third a third. */
function clientsOf(count: number, perSecond: number): FleetScenario["load"] {
  const weights = Array.from({ length: count }, (_, index) => 1 / (index + 1));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const models: Shares = Object.fromEntries(weights.map((weight, index) => [`m${index}`, weight / sum]));
  return (seed) => clients({ perSecond, models, random: createRandom(seed) });
}

/** The hours from noon on, with the most requests. */
function within(hours: number, load: readonly Arrival[]): readonly Arrival[] {
  const fromMs = dayMs / 2;
  return load.flatMap((one) => {
    const atMs = one.atMs - fromMs;
    return atMs >= 0 && atMs < hours * 3_600_000 ? [{ ...one, atMs }] : [];
  });
}

export interface FleetMeasured {
  readonly meanSeconds: number;
  readonly p99Seconds: number;
  /** Refusals with 503 per 100 requests. */
  readonly refused: number;
  readonly neverServedPercent: number;
}

/** `newsMs` is the age of a report when a router gets it. */
export function measureFleet(
  { slots, switchSeconds }: FleetScenario,
  load: readonly Arrival[],
  strategy: Strategy,
  { seed, newsMs }: { readonly seed: number; readonly newsMs: number },
): FleetMeasured {
  const models = [...new Set(load.map(({ model }) => model))];
  const { outcomes, refusals } = runFleet({
    ...{ load, models, slots, places, routers, seed, newsMs, strategy, transition },
    ...{ switchMs: switchSeconds * 1_000, limits: policies.now.limits },
    known: ({ completionTokens }) => ({ tokens: completionTokens }),
  });
  const waits = outcomes.flatMap(({ waitedMs }) => (waitedMs === undefined ? [] : waitedMs / 1_000));
  waits.sort((a, b) => a - b);
  return {
    meanSeconds: waits.reduce((sum, wait) => sum + wait, 0) / waits.length,
    p99Seconds: waits[Math.floor(0.99 * waits.length)] ?? 0,
    refused: (100 * Object.values(refusals).reduce((sum, count) => sum + count, 0)) / load.length,
    neverServedPercent: 100 * (1 - waits.length / load.length),
  };
}
