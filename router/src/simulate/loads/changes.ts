/** Changes of a load: more or fewer requests, fewer days, and what happens to a model. */
import { nearest } from "@weiche/shared/files/config-file.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { Load } from "../load.ts";
import { merged } from "./merged.ts";

/** More or fewer requests, of one model or of all. */
export interface WhatIf {
  /** The text as the user wrote it. */
  readonly text: string;
  readonly model?: string;
  readonly factor: number;
}

const form = /^(?:(load)|model (\S+)) (?:(doubles|triples|halves|stops)|x ?(\d+(?:\.\d+)?))$/;
const factors: Readonly<Record<string, number>> = { doubles: 2, triples: 3, halves: 0.5, stops: 0 };
const example = 'write it like "load doubles", "model NAME x 1.5" or "model NAME stops"';
const factorMax = 1_000;

/** Throws `StartError` with what to correct. */
export function parseWhatIf(text: string, models: readonly string[]): WhatIf {
  const [, load, model, word, number] = form.exec(text.trim()) ?? [];
  if (load === undefined && model === undefined) throw new StartError(`cannot read "${text}": ${example}`);
  const factor = word === undefined ? Number(number) : factors[word]!;
  if (factor > factorMax) throw new StartError(`"${text}": a load can grow at most ${factorMax} times`);
  if (model === undefined) return { text, factor };
  if (!models.includes(model)) {
    const near = nearest(model, models);
    throw new StartError(
      `"${text}" names "${model}", which is no model of the plan${near ? `. Did you mean "${near}"?` : ""}`,
    );
  }
  return { text, model, factor };
}

/** A copy of a load is later by at most this time, so that its bursts do not coincide. */
const apartMsMax = 600_000;

/**
 * Multiplies the requests of one model or of all. Copies come from further accounts and a few minutes later. A part of a
 * copy has each of its requests with this probability.
 */
export function scaled(load: Load, { model, factor }: Pick<WhatIf, "model" | "factor">, seed: number): Load {
  const isOf = (request: { readonly model: string }) => model === undefined || request.model === model;
  const copies = Array.from({ length: Math.ceil(factor) }, (_, copy) =>
    copyOf(load, isOf, copy, Math.min(1, factor - copy), seed),
  );
  return merged([...(model === undefined ? [] : [only(load, (request) => !isOf(request))]), ...copies]);
}

function copyOf(
  load: Load,
  isOf: (request: { readonly model: string }) => boolean,
  copy: number,
  share: number,
  seed: number,
): Load {
  return {
    *[Symbol.iterator]() {
      const random = createRandom(seed * 7_919 + copy);
      const laterMs = copy === 0 ? 0 : random.next() * apartMsMax;
      const named = (name: string) => (copy === 0 ? name : `${name} (${copy + 1})`);
      for (const request of load) {
        if (!isOf(request) || (share < 1 && !random.chance(share))) continue;
        const { conversation } = request;
        yield {
          ...request,
          ...{ atMs: request.atMs + laterMs, account: named(request.account) },
          ...(conversation !== undefined && { conversation: named(conversation) }),
        };
      }
    },
  };
}

function only(load: Load, isWanted: (request: { readonly model: string }) => boolean): Load {
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
