/** The load of a plan: a trace, or the demand and the clients of its models, with the changes that were asked for. */
import { resolve } from "node:path";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { Load } from "../load.ts";
import { accountLoad } from "../loads/account-load.ts";
import { changedBy, firstPart, type WhatIf } from "../loads/changes.ts";
import { fits } from "../loads/fits.ts";
import { merged } from "../loads/merged.ts";
import { isFolder, openClients, type ClientLoadOptions } from "../loads/client-load.ts";
import { spanText } from "../loads/span-text.ts";
import { openTrace } from "../loads/trace.ts";
import { demandLoad } from "./demand-load.ts";
import type { Plan } from "./plan.ts";

export interface PlannedLoad {
  readonly durationMs: number;
  /** When the load begins, in milliseconds after midnight. */
  readonly startsAtMs: number;
  /** The load of one run. A recorded load is the same in each. */
  readonly of: (seed: number) => Load;
  /** Sentences that name each fact that a trace lacks. */
  readonly assumed: readonly string[];
  /** The changes to the plan, as the user wrote them. */
  readonly changes: readonly string[];
}

interface LoadChanges {
  readonly days?: number;
  /** In the order in which they are applied. */
  readonly whatIf?: readonly WhatIf[];
}

type Unchanged = Omit<PlannedLoad, "changes">;

const hourMs = 3_600_000;
/** More would take hours. */
const requestsMax = 100_000_000;

/** Throws `StartError` with the mistakes of a trace and their lines. */
export function loadOf(plan: Plan, { days, whatIf = [] }: LoadChanges = {}): PlannedLoad {
  const asPlanned = plan.load ? recorded(plan, plan.load, days) : made(plan, days);
  const { durationMs, startsAtMs } = asPlanned;
  return {
    ...asPlanned,
    changes: [
      ...(days === undefined ? [] : [days === 1 ? "the first day" : `the first ${days} days`]),
      ...whatIf.map(({ text }) => text),
    ],
    of: (seed) => {
      const load = asPlanned.of(seed);
      const whole = days === undefined && whatIf.length === 0 ? load : firstPart(load, durationMs);
      return whatIf.reduce(
        (before, change, index) => changedBy(before, change, { seed: seed + index, startsAtMs, durationMs }),
        whole,
      );
    },
  };
}

function recorded(
  { folder, models }: Plan,
  { trace: name, model, perSecond }: NonNullable<Plan["load"]>,
  days?: number,
): Unchanged {
  const file = resolve(folder, name);
  const options = { model, models: Object.keys(models), perSecond };
  const whole = isFolder(file) ? described(file, options) : traced(file, options);
  if (days === undefined) return whole;
  const wantedMs = days * 24 * hourMs;
  if (wantedMs > whole.durationMs)
    throw new StartError(
      `${file} has only ${spanText(whole.durationMs)}, but --days wants ${days} ${days === 1 ? "day" : "days"}: give fewer, or leave it out`,
    );
  return { ...whole, durationMs: wantedMs };
}

function traced(file: string, { perSecond, ...options }: ClientLoadOptions): Unchanged {
  if (perSecond !== undefined)
    throw new StartError(`${file}: perSecond scales only ServeGen's client files. Use --scale for a trace`);
  const { load, assumed, durationMs, startsAtMs } = openTrace(file, options);
  return { durationMs, startsAtMs, of: () => load, assumed };
}

function described(folder: string, options: ClientLoadOptions): Unchanged {
  const { durationMs, perSecond, of } = openClients(folder, options);
  const ownRate = `the clients send ${Number(perSecond.toPrecision(3))} requests per second, as in their files`;
  return { durationMs, startsAtMs: 0, of, assumed: options.perSecond === undefined ? [ownRate] : [] };
}

function made({ hours, models }: Plan, days?: number): Unchanged {
  const durationMs = (days === undefined ? hours : 24 * days) * hourMs;
  const demands = new Map(Object.entries(models).flatMap(([model, { demand }]) => (demand ? [[model, demand]] : [])));
  const clients = Object.entries(models).flatMap(([model, raw]) => (raw.clients ? [{ model, ...raw.clients }] : []));
  const perSecond = [...demands.values(), ...clients].reduce((sum, each) => sum + each.perSecond, 0);
  const requests = Math.round((perSecond * durationMs) / 1_000);
  if (requests > requestsMax)
    throw new StartError(
      `the models are asked ${requests} times, and at most ${requestsMax} requests can be simulated: lower perSecond or hours`,
    );
  return {
    ...{ durationMs, startsAtMs: 0, assumed: [] },
    of: (seed) => {
      const independent = demands.size > 0 ? [demandLoad(demands, durationMs, seed)] : [];
      const composed = clients.map(({ like, ...each }, index) =>
        accountLoad({ ...each, fit: fits[like as keyof typeof fits], durationMs, seed: seed * 104_729 + index }),
      );
      return merged([...independent, ...composed]);
    },
  };
}
