/**
 * The least number of slots that a load needs before any rule of a slot is looked at. A model whose requests begin at
 * random times is asked for during 1 - e^(-L S) of the time, with L requests per second of S seconds. A busy model needs
 * as many slots as it takes to generate all of its tokens with every place taken.
 */
import type { EngineSpeed } from "../engine/engine-work.ts";
import type { LoadRequest } from "../load.ts";

/** The requests of a load for one model. */
export class Asked {
  requests = 0;
  inputTokens = 0;
  outputTokens = 0;

  add({ inputTokens, outputTokens }: LoadRequest): void {
    this.requests++;
    this.inputTokens += inputTokens;
    this.outputTokens += outputTokens;
  }
}

export interface ModelBound {
  readonly model: string;
  readonly perSecond: number;
  /** The time of one request alone on the engine. */
  readonly aloneSeconds: number;
  /** The share of the time in which at least one request for the model runs. */
  readonly askedShare: number;
  /** The number of slots that generate all tokens of the model if every place is taken. */
  readonly busySlots: number;
}

export function boundOf(
  model: string,
  { requests, inputTokens, outputTokens }: Asked,
  engine: EngineSpeed & { readonly places: number },
  durationMs: number,
): ModelBound {
  const perSecond = requests / (durationMs / 1_000);
  const [input, output] = [inputTokens / Math.max(1, requests), outputTokens / Math.max(1, requests)];
  const context = input + output / 2;
  const readSeconds = input / engine.prefillTokensPerSecond;
  const fitting = Math.max(1, Math.min(engine.places, engine.cacheTokens / Math.max(1, input + output)));
  const aloneSeconds = readSeconds + (output * stepMs(engine, 1, context)) / 1_000;
  const busySeconds = (output * stepMs(engine, fitting, fitting * context)) / 1_000 / fitting;
  return {
    ...{ model, perSecond, aloneSeconds },
    askedShare: 1 - Math.exp(-perSecond * aloneSeconds),
    busySlots: perSecond * Math.max(busySeconds, readSeconds),
  };
}

/** The slots that the model needs on average. */
export function demandOf({ askedShare, busySlots }: ModelBound): number {
  return Math.max(askedShare, busySlots);
}

/** Each model needs the larger of both numbers. Models that share slots need the sum of their numbers. */
export function slotsAtLeast(bounds: readonly ModelBound[]): number {
  const sum = bounds.reduce((total, bound) => total + demandOf(bound), 0);
  return Math.max(1, Math.ceil(sum - 1e-9));
}

function stepMs({ step }: EngineSpeed, running: number, contextTokens: number): number {
  return step.baseMs + step.perRunningMs * running + step.perTokenMs * contextTokens;
}
