/** Loads of a day, from trace files of the user and from generators. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { asId, type AccountId, type ModelId } from "@weiche/shared/ids.ts";
import type { LoadRequest } from "@weiche/router/src/simulate/load.ts";
import { openTrace, type Trace } from "@weiche/router/src/simulate/loads/trace.ts";
import { exponential, gammaGap, normal } from "@weiche/router/src/simulate/loads/draws.ts";
import type { Random } from "@weiche/shared/random.ts";
import type { Arrival } from "./arrival.ts";

export const dayMs = 86_400_000;

/** Lengths of a request and of its answer, in tokens. */
type Sizes = readonly [promptTokens: number, completionTokens: number];

/** Reads a day of ServeGen, which begins at midnight with its first request. Returns undefined if the file does not exist. */
export function readServegen(folder: string, name: string): readonly Arrival[] | undefined {
  const trace = traceOf(join(folder, `${name}.jsonl`));
  return trace && Array.from(trace.load, arrivalOf);
}

/** Reads the sizes of Azure's public trace. Returns undefined if the file does not exist. */
export function readAzureSizes(folder: string, name: string): readonly Sizes[] | undefined {
  const trace = traceOf(join(folder, `${name}.csv`), "any");
  return trace && Array.from(trace.load, ({ inputTokens, outputTokens }): Sizes => [inputTokens, outputTokens]);
}

function traceOf(file: string, model?: string): Trace | undefined {
  return existsSync(file) ? openTrace(file, { model }) : undefined;
}

function arrivalOf({ atMs, model, account, inputTokens, outputTokens }: LoadRequest): Arrival {
  return {
    ...{ atMs, model: asId<ModelId>(model), account: asId<AccountId>(account) },
    ...{ promptTokens: inputTokens, completionTokens: outputTokens },
  };
}

/** Shares of the requests by model. */
export type Shares = Readonly<Record<string, number>>;

interface PoissonOptions {
  readonly perSecond: number;
  readonly models: Shares;
  readonly sizes: (random: Random) => Sizes;
  readonly random: Random;
}

/** Independent requests of 40 accounts. */
export function poisson({ perSecond, models, sizes, random }: PoissonOptions): Arrival[] {
  const load: Arrival[] = [];
  for (let atMs = exponential(random, 1_000 / perSecond); atMs < dayMs; atMs += exponential(random, 1_000 / perSecond))
    load.push(arrival(atMs, pickShare(models, random), random.below(40), sizes(random)));
  return load;
}

/**
 * Bursts for one model each, with half a second between requests and two minutes between bursts, and a few other
 * requests.
 */
export function bursts({ models, random }: Pick<PoissonOptions, "models" | "random">): Arrival[] {
  const load = poisson({ perSecond: 0.05, models, sizes: chatSizes, random });
  for (let atMs = exponential(random, 120_000); atMs < dayMs; atMs += exponential(random, 120_000)) {
    const model = pickShare(models, random);
    const account = random.below(40);
    for (let left = 5 + random.below(26), at = atMs; left > 0; left--, at += exponential(random, 500))
      load.push(arrival(at, model, account, chatSizes(random)));
  }
  return inOrder(load);
}

/**
 * A load composed of clients like ServeGen. Few clients send most requests, in bursts with Gamma gaps, and more by day
 * than at night. Each client has one model.
 */
export function clients({ perSecond, models, random }: Omit<PoissonOptions, "sizes">): Arrival[] {
  const count = 60;
  const load: Arrival[] = [];
  const weights = Array.from({ length: count }, (_, rank) => 1 / (rank + 1));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  for (const [client, weight] of weights.entries()) {
    for (const [name, share] of Object.entries(models)) {
      const cv = 1 + random.next() * 4;
      const rate = (perSecond * share * weight) / sum;
      for (let atMs = 0; (atMs += gammaGap(cv, random) * (1_000 / rate)) < dayMs;)
        if (random.next() < dayCurve(atMs)) load.push(arrival(atMs, asId<ModelId>(name), client, chatSizes(random)));
    }
  }
  return inOrder(load);
}

/** Azure's chats, log-normal: input mean 1,155 and median 1,020, output mean 211 and median 129. */
export function chatSizes(random: Random): Sizes {
  const size = (median: number, sigma: number) => Math.ceil(median * Math.exp(sigma * normal(random)));
  return [size(1_020, 0.5), Math.min(4_000, size(129, 0.99))];
}

/** The same load with each request up to a minute later. */
export function jittered(load: readonly Arrival[], random: Random): Arrival[] {
  return inOrder(load.map((one) => ({ ...one, atMs: one.atMs + random.next() * 60_000 })));
}

function inOrder(load: Arrival[]): Arrival[] {
  return load.sort((a, b) => a.atMs - b.atMs);
}

function arrival(atMs: number, model: ModelId, account: number, [promptTokens, completionTokens]: Sizes): Arrival {
  return { atMs, model, account: asId<AccountId>(`account-${account}`), promptTokens, completionTokens };
}

function pickShare(models: Shares, random: Random): ModelId {
  let rest = random.next();
  const names = Object.keys(models);
  const found = names.find((name) => (rest -= models[name]!) < 0);
  return asId<ModelId>(found ?? names.at(-1)!);
}

/** 1 at 2 p.m., a third at 2 a.m. */
function dayCurve(atMs: number): number {
  return 2 / 3 + Math.cos((2 * Math.PI * (atMs - (14 / 24) * dayMs)) / dayMs) / 3;
}
