/**
 * Describes the fleet as it is: the nodes' slots and models by their reports, times of switches by the slots' histories,
 * and the speed of answers by the usage. What nobody has measured has the defaults of a plan, and is named.
 */
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { servedWith, type PastSwitch } from "../../nodes/node-view.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import type { SimulationOptions } from "../engine/simulation.ts";
import { engineOf, limitsOf } from "../plan/fleet.ts";
import { planOf, type Plan } from "../plan/plan.ts";
import type { ModelUsage } from "./own-usage.ts";

export interface OwnFleet {
  readonly nodes: SimulationOptions["nodes"];
  readonly retryMs: readonly number[];
  /** GPUs of each slot, in the order of the nodes' slots. */
  readonly gpus: readonly number[];
  /** The model that requests for a model are for in the simulation: the first that its engine serves. */
  readonly servedAs: ReadonlyMap<string, string>;
  readonly measured: readonly Told[];
  readonly assumed: readonly Told[];
}

/** A value of a plan, with the models for which it holds. None for the whole fleet. */
interface Told {
  readonly path: string;
  readonly models: readonly string[];
  readonly value: string;
}

type Values = Readonly<Record<string, number | { readonly baseMs: number }>>;

/** Returns undefined if no linked node has a slot. */
export function ownFleet(details: readonly NodeDetail[], usage: ReadonlyMap<string, ModelUsage>): OwnFleet | undefined {
  const linked = details.filter(({ linked: isLinked, view }) => isLinked && view.slots.length > 0);
  if (linked.length === 0) return undefined;
  const servedAs = new Map(
    linked.flatMap(({ view }) =>
      view.slots.flatMap((slot) => slot.models.map((model) => [model, servedWith(slot, model)[0]!] as const)),
    ),
  );
  const models = [...new Set(servedAs.values())];
  const pasts = linked.flatMap(({ histories }) => [...histories.values()].flat());
  const places = linked.flatMap(({ view }) =>
    view.slots.map((slot) => [slot.activeModel, slot.maxConcurrent] as const),
  );
  const known = models.map((model) => ({
    model,
    ...switchTimes(model, pasts),
    ...speedOf(usage.get(model)),
    ...placesOf(model, places),
  }));
  // Routers and slots are as they are, so they are not assumed.
  const plan = planOf(
    JSON.stringify({ models: known, load: { trace: "usage" }, slotsPerNode: 1, routers: 1 }),
    "usage",
  );
  return {
    ...{ nodes: nodesOf(linked, plan), servedAs, gpus: linked.flatMap(gpusOf) },
    retryMs: plan.retrySeconds.map((seconds) => seconds * 1_000),
    measured: known.flatMap(({ model, ...values }) => told(model, values)),
    assumed: plan.assumed.map(({ path, models: of, value }) => ({ path, models: of, value: String(value) })),
  };
}

function nodesOf(linked: readonly NodeDetail[], plan: Plan): SimulationOptions["nodes"] {
  return linked.map(({ view }) => ({
    name: view.node,
    slots: view.slots.map((slot) => {
      const models = [...new Set(slot.models.map((model) => servedWith(slot, model)[0]!))];
      const active = slot.activeModel && servedWith(slot, slot.activeModel)[0];
      return {
        name: slot.name,
        engines: models.map((model) => engineOf(model, plan.models[model]!)),
        limits: limitsOf(plan.rules),
        ...(active !== undefined && { awake: asId<ModelId>(active) }),
      };
    }),
  }));
}

/** A node does not report which GPUs a slot has, so its GPUs are shared equally. Without a report, a slot counts as one. */
function gpusOf({ view, report }: NodeDetail): number[] {
  const gpus = report?.host?.gpus.length || view.slots.length;
  return view.slots.map(() => gpus / view.slots.length);
}

function placesOf(
  model: string,
  places: readonly (readonly [active: string | undefined, most: number | undefined])[],
): Values {
  const most = places.find(([active, each]) => active === model && each !== undefined)?.[1];
  return most === undefined ? {} : { places: most };
}

/** Engines that sleep wake as fast as they started lately. */
function switchTimes(model: string, pasts: readonly PastSwitch[]): Values {
  const done = pasts.filter(({ failed }) => !failed);
  const starts = done.flatMap((past) =>
    past.model === model && past.startMs !== undefined ? past.startMs + (past.probeMs ?? 0) : [],
  );
  const stops = done.flatMap((past) =>
    past.fromModel === model && past.stopMs !== undefined ? past.stopMs + (past.memoryMs ?? 0) : [],
  );
  return {
    ...(starts.length > 0 && { startSeconds: seconds(starts), wakeSeconds: seconds(starts) }),
    ...(stops.length > 0 && { stopSeconds: seconds(stops) }),
  };
}

/** Answers of the week ran beside others, so the time of a step includes what others cost. */
function speedOf(usage: ModelUsage | undefined): Values {
  if (!usage || usage.msPerToken.count === 0) return {};
  const baseMs = Number(usage.msPerToken.quantileMs(0.5).toPrecision(3));
  const step = { baseMs, perRunningMs: 0, perThousandTokensMs: 0 };
  return { step };
}

function seconds(times: readonly number[]): number {
  return Number((times.reduce((sum, ms) => sum + ms, 0) / times.length / 1_000).toPrecision(3));
}

function told(model: string, values: Values): Told[] {
  return Object.entries(values).flatMap(([path, value]) => {
    if (path === "wakeSeconds") return [];
    const shown = typeof value === "number" ? value : value.baseMs;
    return [{ path: path === "step" ? "step.baseMs" : path, models: [model], value: String(shown) }];
  });
}
