/** The load that ServeGen's client files describe. */
import { statSync } from "node:fs";
import { StartError, unreadable } from "@weiche/shared/files/start-error.ts";
import { formatMistakes, nearest } from "@weiche/shared/files/config-file.ts";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import type { Load, LoadRequest } from "../load.ts";
import { firstPart } from "./changes.ts";
import { readClients, type Client, type Window } from "./client-files.ts";
import { gammaGap, weibullGap } from "./draws.ts";
import { merged } from "./merged.ts";
import { lengthFrom } from "./quantiles.ts";
import type { Trace } from "./trace.ts";

const dayMs = 86_400_000;

export interface ClientLoadOptions {
  /** The model of a folder with the files of one model. By default, it has the folder's name. */
  readonly model?: string | undefined;
  /** The known models. Undefined if any name is accepted. */
  readonly models?: readonly string[] | undefined;
  /** The mean rate of all clients together. Undefined if it is that of the files. */
  readonly perSecond?: number | undefined;
}

interface ClientLoad {
  readonly durationMs: number;
  /** The mean rate of the files. */
  readonly perSecond: number;
  /** The load of one run. */
  readonly of: (seed: number) => Load;
}

export function isFolder(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** The first day of the clients' load, in the form of a trace. */
export function openClientDay(folder: string, model?: string): Trace {
  const { durationMs: wholeMs, of } = openClients(folder, { model });
  const durationMs = Math.min(dayMs, wholeMs);
  const load = firstPart(of(1), durationMs);
  let requests = 0;
  for (const _ of load) requests++;
  const shown = durationMs < wholeMs ? `the first of ${Number((wholeMs / dayMs).toFixed(1))} days` : "the whole time";
  const assumed = [`requests are drawn by the clients' distributions. Shown is ${shown}`];
  return { format: "ServeGen's client files", load, durationMs, startsAtMs: 0, requests, failed: 0, assumed };
}

/** Throws `StartError` with the mistakes of the files. */
export function openClients(folder: string, { model, models: known, perSecond }: ClientLoadOptions): ClientLoad {
  const { models, mistakes } = readClients(folder, model);
  const unknown = models.filter((each) => known !== undefined && !known.includes(each.model));
  const all = [...mistakes, ...unknown.map((each) => ({ line: 0, message: unknownModel(each.model, known!) }))];
  if (all.length > 0) throw new StartError(formatMistakes(folder, all).join("; "));
  const clients = models.flatMap((each) => each.clients.map((client) => ({ client, model: each.model })));
  const durationMs = Math.max(...clients.map(({ client }) => endOf(client)));
  const requests = clients.reduce((sum, { client }) => sum + requestsIn(client), 0);
  const ownPerSecond = (1_000 * requests) / durationMs;
  if (!(ownPerSecond > 0)) throw new StartError(`${folder}: no client sends a request`);
  const factor = perSecond === undefined ? 1 : perSecond / ownPerSecond;
  return {
    ...{ durationMs, perSecond: ownPerSecond },
    of: (seed) =>
      merged(
        clients.map(({ client, model: name }, index) => ({
          [Symbol.iterator]: () => requestsOf(client, name, factor, createRandom(seed * 7_919 + index)),
        })),
      ),
  };
}

function unknownModel(model: string, known: readonly string[]): string {
  const near = nearest(model, known);
  return `"${model}" is no model of the plan; ${near === undefined ? `known are ${known.join(", ")}` : `did you mean "${near}"?`}`;
}

/** The time after which the last window ends, if all of them have the same length. */
function endOf({ windows }: Client): number {
  const [last, before] = [windows.at(-1), windows.at(-2)];
  return last ? last.fromMs + (before ? last.fromMs - before.fromMs : 600_000) : 0;
}

function requestsIn(client: Client): number {
  return client.windows.reduce((sum, { perSecond }, index) => sum + perSecond * (lengthMs(client, index) / 1_000), 0);
}

function lengthMs({ windows, ...client }: Client, index: number): number {
  return (windows[index + 1]?.fromMs ?? endOf({ windows, ...client })) - windows[index]!.fromMs;
}

function* requestsOf(client: Client, model: string, factor: number, random: Random): Generator<LoadRequest, void> {
  let at = 0;
  for (const [index, window] of client.windows.entries()) {
    while (client.lengths[at + 1] && client.lengths[at + 1]!.fromMs <= window.fromMs) at++;
    const lengths = client.lengths[at];
    if (!lengths) return;
    const tookMs = lengthMs(client, index);
    for (const afterMs of timesOf(window, factor, tookMs, random))
      yield {
        ...{ atMs: window.fromMs + afterMs, account: client.account, model },
        inputTokens: lengthFrom(lengths.input, random),
        outputTokens: lengthFrom(lengths.output, random),
      };
  }
}

/**
 * The times of a window's requests. As in ServeGen, their gaps are drawn and then stretched to the window. The window
 * begins at a random place of them, so that few requests are not lost at its end.
 */
function timesOf({ perSecond, pattern }: Window, factor: number, tookMs: number, random: Random): Float64Array {
  const count = Math.floor((perSecond * factor * tookMs) / 1_000 + random.next());
  if (pattern === undefined || count === 0) return new Float64Array();
  const { name, shape } = pattern;
  const gaps = Float64Array.from({ length: count }, () =>
    name === "Gamma" ? gammaGap(1 / Math.sqrt(shape), random) : weibullGap(shape, random),
  );
  const sum = gaps.reduce((total, gap) => total + gap, 0);
  const begin = random.next() * sum;
  let place = 0;
  return gaps.map((gap) => (((place += gap) + begin) % sum) * (tookMs / sum)).sort();
}
