/** Changes of a load: more or fewer requests, hours without requests, and one model more. */
import { nearest } from "@weiche/shared/files/config-file.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { unreachable } from "@weiche/shared/assert.ts";
import type { Load, LoadRequest } from "../load.ts";
import { merged } from "./merged.ts";

interface Scaled {
  readonly kind: "scaled";
  /** Undefined for all models. */
  readonly model?: string;
  readonly factor: number;
}

/** Hours of each day without requests for the model, in milliseconds after midnight. They may include midnight. */
interface Quiet {
  readonly kind: "quiet";
  readonly model: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** One model more, with the engine and the load of another. */
interface Added {
  readonly kind: "added";
  readonly model: string;
  readonly like: string;
}

/** `text`: as the user wrote it. */
export type WhatIf = { readonly text: string } & (Scaled | Quiet | Added);

const quietForm = /^nobody calls model (\S+) from (\d\d?:\d\d) to (\d\d?:\d\d)$/;
const addedForm = /^model (\S+) joins like (\S+)$/;
const form = /^(?:(load)|model (\S+)) (?:(doubles|triples|halves|stops)|x ?(\d+(?:\.\d+)?))$/;
const factors: Readonly<Record<string, number>> = { doubles: 2, triples: 3, halves: 0.5, stops: 0 };
const example =
  'write it like "load doubles", "model NAME x 1.5", "model NAME stops", "nobody calls model NAME from 22:00 to 6:00", "model NEW joins like NAME" or "node node-2 fails at 10:00 for 2h"';
const factorMax = 1_000;

/** Throws `StartError` with what to correct. */
export function parseWhatIf(text: string, models: readonly string[]): WhatIf {
  return quietOf(text, models) ?? addedOf(text, models) ?? scaledOf(text, models);
}

function quietOf(text: string, models: readonly string[]): WhatIf | undefined {
  const [, model, from, until] = quietForm.exec(text.trim()) ?? [];
  if (model === undefined) return undefined;
  requireModel(text, model, models);
  const [fromMs, untilMs] = [timeOfDay(text, from!), timeOfDay(text, until!)];
  if (fromMs === untilMs) throw new StartError(`"${text}" names one time twice: write "model ${model} stops"`);
  return { text, kind: "quiet", model, fromMs, untilMs };
}

function addedOf(text: string, models: readonly string[]): WhatIf | undefined {
  const [, model, like] = addedForm.exec(text.trim()) ?? [];
  if (model === undefined) return undefined;
  requireModel(text, like!, models);
  if (models.includes(model)) throw new StartError(`"${text}": the plan has a model "${model}" already`);
  return { text, kind: "added", model, like: like! };
}

/** Reads `6:00` or `22:30` as milliseconds after midnight. */
export function timeOfDay(text: string, time: string): number {
  const [hours, minutes] = time.split(":").map(Number) as [number, number];
  if (hours > 23 || minutes > 59) throw new StartError(`"${text}": ${time} is not a time of the day`);
  return (hours * 60 + minutes) * 60_000;
}

function scaledOf(text: string, models: readonly string[]): WhatIf {
  const [, load, model, word, number] = form.exec(text.trim()) ?? [];
  if (load === undefined && model === undefined) throw new StartError(`cannot read "${text}": ${example}`);
  const factor = word === undefined ? Number(number) : factors[word]!;
  if (factor > factorMax) throw new StartError(`"${text}": a load can grow at most ${factorMax} times`);
  if (model === undefined) return { text, kind: "scaled", factor };
  requireModel(text, model, models);
  return { text, kind: "scaled", model, factor };
}

function requireModel(text: string, model: string, models: readonly string[]): void {
  if (models.includes(model)) return;
  const near = nearest(model, models);
  throw new StartError(
    `"${text}" names "${model}", which is no model of the plan${near ? `. Did you mean "${near}"?` : ""}`,
  );
}

interface Run {
  readonly seed: number;
  /** The load ends before. */
  readonly durationMs: number;
}

/** `startsAtMs`: when the load begins, in milliseconds after midnight. */
export function changedBy(load: Load, change: WhatIf, run: Run & { readonly startsAtMs: number }): Load {
  switch (change.kind) {
    case "scaled":
      return scaled(load, change, run);
    case "quiet":
      return only(
        load,
        (request) => request.model !== change.model || !isWithin(run.startsAtMs + request.atMs, change),
      );
    case "added": {
      const isLike = ({ model }: { readonly model: string }) => model === change.like;
      return merged([load, renamed(copyOf(load, isLike, 1, 1, run), change.model)]);
    }
    default:
      return unreachable(change);
  }
}

function isWithin(atMs: number, { fromMs, untilMs }: Quiet): boolean {
  const ofDayMs = atMs % dayMs;
  return fromMs < untilMs ? ofDayMs >= fromMs && ofDayMs < untilMs : ofDayMs >= fromMs || ofDayMs < untilMs;
}

function renamed(load: Load, model: string): Load {
  return {
    *[Symbol.iterator]() {
      for (const request of load) yield { ...request, model };
    },
  };
}

const dayMs = 86_400_000;

/** A copy of a load is later by at most this time, so that its bursts do not coincide. */
const apartMsMax = 600_000;

/**
 * Multiplies the requests of one model or of all. Copies come from further accounts and a few minutes later. Those that
 * would come after the end come at the beginning. A part of a copy has each of its requests with this probability.
 */
export function scaled(load: Load, { model, factor }: Pick<Scaled, "model" | "factor">, run: Run): Load {
  const isOf = (request: { readonly model: string }) => model === undefined || request.model === model;
  const copies = Array.from({ length: Math.ceil(factor) }, (_, copy) =>
    copyOf(load, isOf, copy, Math.min(1, factor - copy), run),
  );
  return merged([...(model === undefined ? [] : [only(load, (request) => !isOf(request))]), ...copies]);
}

function copyOf(
  load: Load,
  isOf: (request: { readonly model: string }) => boolean,
  copy: number,
  share: number,
  { seed, durationMs }: Run,
): Load {
  const newRandom = () => createRandom(seed * 7_919 + copy);
  const laterMs = copy === 0 ? 0 : (newRandom().next() * apartMsMax) % durationMs;
  const named = (name: string) => (copy === 0 ? name : `${name} (${copy + 1})`);
  function* part(fromMs: number, untilMs: number, shiftMs: number): Generator<LoadRequest, void, undefined> {
    const random = newRandom();
    for (const request of load) {
      const isTaken = isOf(request) && (share === 1 || random.chance(share));
      const { atMs, account, conversation } = request;
      if (!isTaken || atMs < fromMs || atMs >= untilMs) continue;
      yield {
        ...request,
        ...{ atMs: atMs + shiftMs, account: named(account) },
        ...(conversation !== undefined && { conversation: named(conversation) }),
      };
    }
  }
  return {
    *[Symbol.iterator]() {
      if (laterMs > 0) yield* part(durationMs - laterMs, durationMs, laterMs - durationMs);
      yield* part(0, durationMs - laterMs, laterMs);
    },
  };
}

function only(load: Load, isWanted: (request: LoadRequest) => boolean): Load {
  return {
    *[Symbol.iterator]() {
      for (const request of load) if (isWanted(request)) yield request;
    },
  };
}

/** The requests before `untilMs`. */
export function firstPart(load: Load, untilMs: number): Load {
  return {
    *[Symbol.iterator]() {
      for (const request of load) {
        if (request.atMs >= untilMs) return;
        yield request;
      }
    },
  };
}
