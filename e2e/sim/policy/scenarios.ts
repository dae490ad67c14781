/** The loads on which policies are compared. */
import { createRandom } from "@weiche/shared/random.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import { bursts, chatSizes, clients, jittered, poisson, readAzureSizes, readServegen, type Shares } from "./loads.ts";
import { runPolicy, type Estimate, type RunResult } from "./policy-run.ts";
import type { Arrival } from "./arrival.ts";
import { policies, type PolicyName } from "./policies.ts";

export interface Scenario {
  readonly name: string;
  readonly places: number;
  readonly switchSeconds: number;
  readonly load: (seed: number) => readonly Arrival[];
}

const two: Shares = { a: 0.5, b: 0.5 };
const rare: Shares = { small: 0.32, mid: 0.63, large: 0.05 };

/** Returns the generated loads and, with `folder`, the loads of the traces in it. */
export function scenarios(folder: string | undefined): readonly Scenario[] {
  return [...traced(folder ?? ""), ...generated()];
}

function generated(): readonly Scenario[] {
  const even = (perSecond: number) => (seed: number) =>
    poisson({ perSecond, models: two, sizes: chatSizes, random: createRandom(seed) });
  const composed = (seed: number) => clients({ perSecond: 0.4, models: rare, random: createRandom(seed) });
  const inBursts = (seed: number) => bursts({ models: two, random: createRandom(seed) });
  return [
    { name: "Poisson, two models, 0.4/s", places: 8, switchSeconds: 10, load: even(0.4) },
    { name: "Poisson, two models, 0.8/s", places: 16, switchSeconds: 3, load: even(0.8) },
    { name: "bursts, two models", places: 16, switchSeconds: 10, load: inBursts },
    { name: "clients, one model rare", places: 16, switchSeconds: 10, load: composed },
    { name: "clients, one model rare", places: 16, switchSeconds: 30, load: composed },
  ];
}

/** Loads on which a minimum residency could prevent switches: short answers and fast switches. */
export function quickScenarios(): readonly Scenario[] {
  const quick = (perSecond: number, models: Shares) => (seed: number) =>
    poisson({ perSecond, models, sizes: () => [200, 10], random: createRandom(seed) });
  return [1, 3, 10].flatMap((switchSeconds) => [
    { name: "short answers, two models, 2/s", places: 16, switchSeconds, load: quick(2, two) },
    { name: "short answers, two models, 0.5/s", places: 16, switchSeconds, load: quick(0.5, two) },
    { name: "short answers, 90 % for one model, 1/s", places: 16, switchSeconds, load: quick(1, { a: 0.9, b: 0.1 }) },
  ]);
}

function traced(folder: string): readonly Scenario[] {
  const days = ["servegen-day5-0.25", "servegen-day9-0.25", "servegen-day5-0.6"].flatMap((name) => {
    const day = readServegen(folder, name);
    const load = (seed: number) => (seed === 1 ? day! : jittered(day!, createRandom(seed)));
    return day ? [10, 30].map((switchSeconds) => ({ name, places: 16, switchSeconds, load })) : [];
  });
  const sizes = readAzureSizes(folder, "azure-2023-conv");
  const chats = (perSecond: number) => (seed: number) =>
    poisson({ perSecond, models: two, sizes: (random) => random.pick(sizes!), random: createRandom(seed) });
  const azure = [
    { name: "Azure chats, two models, 0.4/s", places: 8, switchSeconds: 10, load: chats(0.4) },
    { name: "Azure chats, two models, 0.8/s", places: 16, switchSeconds: 3, load: chats(0.8) },
  ];
  return [...days, ...(sizes ? azure : [])];
}

export interface Measured {
  readonly meanSeconds: number;
  readonly p99Seconds: number;
  /** The p99 wait for the model with the fewest requests. */
  readonly rareP99Seconds: number;
  /** Refusals with 503 per 100 requests, and those with `model_switching` among them. */
  readonly refused: number;
  readonly switching: number;
  readonly neverServedPercent: number;
  readonly switchesPerHour: number;
  /** The percentage of waits over a second whose estimate was within a fifth. */
  readonly estimatedPercent: number;
}

/** `changed` contains limits that differ from the policy's. */
export function measure(
  { places, switchSeconds }: Scenario,
  load: readonly Arrival[],
  name: PolicyName,
  changed: Partial<SlotLimits> = {},
): Measured {
  const models = [...new Set(load.map(({ model }) => model))];
  const { limits, transition } = policies[name];
  return summaryOf(
    runPolicy({
      ...{ load, models, places, switchMs: switchSeconds * 1_000 },
      limits: { ...limits, ...changed },
      transition: transition(),
    }),
  );
}

function summaryOf({ outcomes, estimates, refusals, switches }: RunResult): Measured {
  const counts = new Map<ModelId, number>();
  for (const { model } of outcomes) counts.set(model, (counts.get(model) ?? 0) + 1);
  const [[rarest]] = [...counts].sort(([, a], [, b]) => a - b) as [[ModelId, number]];
  const waits = waitsOf(outcomes);
  const sum = Object.values(refusals).reduce((total, count) => total + count, 0);
  return {
    meanSeconds: waits.reduce((total, wait) => total + wait, 0) / waits.length,
    p99Seconds: p99(waits),
    rareP99Seconds: p99(waitsOf(outcomes.filter(({ model }) => model === rarest))),
    refused: (100 * sum) / outcomes.length,
    switching: (100 * (refusals.model_switching ?? 0)) / outcomes.length,
    neverServedPercent: 100 * (1 - waits.length / outcomes.length),
    switchesPerHour: switches / 24,
    estimatedPercent: 100 * shareWithinFifth(estimates),
  };
}

function shareWithinFifth(estimates: RunResult["estimates"]): number {
  const waited = estimates.filter(({ waitedMs }) => waitedMs > 1_000);
  const isNear = ({ estimatedMs, waitedMs }: Estimate) => Math.abs(estimatedMs - waitedMs) <= waitedMs / 5;
  return waited.filter(isNear).length / waited.length;
}

/** Returns the waits in seconds, in ascending order. */
function waitsOf(outcomes: RunResult["outcomes"]): readonly number[] {
  const served = outcomes.flatMap(({ waitedMs }) => (waitedMs === undefined ? [] : waitedMs / 1_000));
  return served.sort((a, b) => a - b);
}

function p99(sorted: readonly number[]): number {
  return sorted[Math.floor(0.99 * sorted.length)] ?? 0;
}
