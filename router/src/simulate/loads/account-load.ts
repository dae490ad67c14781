/**
 * Makes the load of one model, composed of accounts as ServeGen (NSDI'26) found them: few accounts send most requests, in
 * bursts, and more by day than at night. Accounts draw their lengths from the same distributions.
 */
import { createRandom, type Random } from "@weiche/shared/random.ts";
import type { Load, LoadRequest } from "../load.ts";
import { gammaGap, lengthOf, restOfGap } from "./draws.ts";
import type { Fit } from "./fits.ts";
import { merged } from "./merged.ts";

interface AccountLoadOptions {
  readonly model: string;
  /** The mean over a day. */
  readonly perSecond: number;
  readonly fit: Fit;
  /** The rate at night as a share of the rate at `peakHour`. */
  readonly nightShare: number;
  readonly durationMs: number;
  readonly seed: number;
}

const dayMs = 86_400_000;
const peakMs = (14 / 24) * dayMs;

/** The load begins at midnight. */
export function accountLoad(options: AccountLoadOptions): Load {
  const { fit, perSecond, seed } = options;
  const weights = Array.from({ length: fit.accounts }, (_, rank) => 1 / (rank + 1));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return merged(
    weights.map((weight, index) => ({
      [Symbol.iterator]: () =>
        requestsOf(`account-${index}`, (perSecond * weight) / sum, options, createRandom(seed * 7_919 + index)),
    })),
  );
}

function* requestsOf(
  account: string,
  perSecond: number,
  { model, fit, nightShare, durationMs }: AccountLoadOptions,
  random: Random,
): Generator<LoadRequest, void, undefined> {
  const meanMs = 1_000 / perSecond;
  const conversations = new Conversations(account, fit.continuedShare, random);
  // Gaps are drawn as if the rate were constant, and the day curve stretches them, which keeps their variation.
  let atMs = 0;
  for (let evenMs = restOfGap(fit.gapCv, random) * meanMs; ; evenMs += gammaGap(fit.gapCv, random) * meanMs) {
    atMs = Math.max(atMs, stretched(evenMs, nightShare));
    if (atMs >= durationMs) return;
    const inputTokens = lengthOf(fit.input, random);
    const outputTokens = lengthOf(fit.output, random);
    const request = { atMs, account, model, inputTokens, outputTokens };
    yield fit.continuedShare === 0 ? request : { ...request, conversation: conversations.next(request) };
  }
}

/** The time at which the day curve has had as many requests as a constant rate until `evenMs`. */
function stretched(evenMs: number, nightShare: number): number {
  const swing = (1 - nightShare) / (1 + nightShare);
  if (swing === 0) return evenMs;
  const wave = (2 * Math.PI) / dayMs;
  const at = (ms: number) => ms + (swing / wave) * (Math.sin(wave * (ms - peakMs)) + Math.sin(wave * peakMs));
  let ms = evenMs;
  // Newton's method from within a third of a day; the rate never is 0.
  for (let round = 0; round < 50; round++) {
    const error = at(ms) - evenMs;
    if (Math.abs(error) < 0.01) break;
    ms -= error / (1 + swing);
  }
  return ms;
}

interface Conversation {
  readonly id: string;
  /** Its whole text, with the last answer. */
  tokens: number;
  /** The time from which a person may have read the answer. */
  readableMs: number;
}

const keptMax = 8;
const readingMs = 10_000;

/** The newest conversations of an account. A request continues the longest that is shorter than its prompt. */
class Conversations {
  readonly #account: string;
  readonly #continuedShare: number;
  readonly #random: Random;
  #kept: Conversation[] = [];
  #count = 0;

  constructor(account: string, continuedShare: number, random: Random) {
    this.#account = account;
    this.#continuedShare = continuedShare;
    this.#random = random;
  }

  /** Returns the id of the request's conversation. */
  next({ atMs, inputTokens, outputTokens }: LoadRequest): string {
    const isContinued = this.#random.chance(this.#continuedShare);
    const fitting = this.#kept.filter((each) => each.tokens < inputTokens && each.readableMs <= atMs);
    const longest = fitting.reduce<Conversation | undefined>((a, b) => (a && a.tokens >= b.tokens ? a : b), undefined);
    const conversation = isContinued && longest ? longest : this.#begin();
    conversation.tokens = inputTokens + outputTokens;
    conversation.readableMs = atMs + readingMs;
    return conversation.id;
  }

  #begin(): Conversation {
    const conversation = { id: `${this.#account}-${++this.#count}`, tokens: 0, readableMs: 0 };
    this.#kept = [conversation, ...this.#kept.slice(0, keptMax - 1)];
    return conversation;
  }
}
