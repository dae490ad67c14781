/** Estimates when a waiting request is admitted, from the requests, turns and switches before it. */
import { unreachable } from "@weiche/shared/assert.ts";
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import { lastEndMs } from "./held-times.ts";
import { orderOf, placesFor } from "./slot-places.ts";
import { awakeEngine, placesOf } from "./slot-state.ts";
import type { Awake, Slot, Ticket, Waiter } from "./slot-state.ts";

/** The assumed time from the stop of the old engine to the probe of the new one, until a switch was measured. */
const switchMsDefault = 10_000;
/** The assumed time for which a request holds its places, until one for the model has ended. */
const heldMsDefault = 10_000;
/** The expected remaining time of an answer, as a multiple of the time that it has run. */
const lastingOn = 1.5;

/** The position and estimate of a waiting request. */
export interface Standing {
  /** 1 for the next request for its model in this slot. */
  readonly position: number;
  /** The estimated time until its admission. */
  readonly estimateMs: number;
}

/**
 * Returns the standings of the waiters for these models, by default of all. A later request may come first, because accounts
 * share places.
 */
export function standings(
  slot: Slot,
  nowMs: number,
  models: Iterable<ModelId> = new Set(slot.waiters.map(({ model }) => model)),
): ReadonlyMap<Ticket, Standing> {
  const all = new Map<Ticket, Standing>();
  for (const model of models) {
    const turnMs = turnMsOnce(slot, model, nowMs);
    const places = placesNext(slot, model);
    let ahead = 0;
    const own = slot.waiters.filter((waiter) => waiter.model === model);
    for (const [index, waiter] of orderOf(slot, model, own).entries()) {
      all.set(waiter.ticket, { position: index + 1, estimateMs: waitMs(slot, waiter, ahead, turnMs, nowMs) });
      ahead += placesFor(waiter.answers, places);
    }
  }
  return all;
}

/**
 * Estimates the times until the first and the last of these waiters for one engine are admitted. Cheaper than all standings.
 */
export function nextAndLastMs(
  slot: Slot,
  own: readonly Waiter[],
  nowMs: number,
): readonly [nextMs: number, lastMs: number] {
  const [first, last] = [own[0]!, own.at(-1)!];
  const { model } = first;
  const places = placesNext(slot, model);
  const turnMs = turnMsOnce(slot, model, nowMs);
  const isBefore = (one: Waiter) => (other: Waiter) => other.model === model && other.ticket < one.ticket;
  const ahead = (one: Waiter) =>
    slot.waiters.filter(isBefore(one)).reduce((sum, { answers }) => sum + placesFor(answers, places), 0);
  return [waitMs(slot, first, ahead(first), turnMs, nowMs), waitMs(slot, last, ahead(last), turnMs, nowMs)];
}

/** `ahead`: the places that others get first. `turnMs`: the time until the model's next turn. */
function waitMs(slot: Slot, waiter: Waiter, ahead: number, turnMs: () => number, nowMs: number): number {
  const { model, answers } = waiter;
  const places = placesNext(slot, model);
  const needed = ahead + placesFor(answers, places);
  const engine = awakeEngine(slot.state);
  if (engine?.model === model && engine.suspectedAtMs === undefined) {
    const placeMs = (heldEstimateMs(slot, model) * Math.max(0, needed - (places - slot.taken))) / places;
    if (placeMs <= untilClosedMs(slot, waiter, nowMs)) return placeMs;
  }
  return turnMs() + lateMs(slot, model, needed);
}

/** Returns the time for which the active model can still admit this waiter. */
function untilClosedMs({ state, waiters }: Slot, { ticket }: Waiter, nowMs: number): number {
  if (state.kind !== "draining") return Infinity;
  const other = waiters.find(({ model }) => model !== state.engine.model);
  return !other || ticket < other.ticket ? Infinity : state.closesAtMs - nowMs;
}

/** Returns the time from the beginning of a turn until it has given `needed` places. */
function lateMs(slot: Slot, model: ModelId, needed: number): number {
  const places = placesNext(slot, model);
  return (heldEstimateMs(slot, model) * Math.max(0, needed - places)) / places;
}

function placesNext(slot: Slot, model: ModelId): number {
  const engine = awakeEngine(slot.state);
  return engine?.model === model ? placesOf(slot, engine) : (slot.maxConcurrent.get(model) ?? 1);
}

export function switchEstimateMs(slot: Slot, model: ModelId): number {
  return slot.switchMs.get(model) ?? switchMsDefault;
}

export function heldEstimateMs(slot: Slot, model: ModelId): number {
  return slot.held.get(model)?.meanMs ?? heldMsDefault;
}

/** Estimated time until one more request for the model is admitted, if it has to wait for a switch. */
export function turnEstimateMs(slot: Slot, model: ModelId, nowMs: number, account?: AccountId): number {
  const ahead = placesAhead(slot, model, slot.maxConcurrent.get(model) ?? 1, account);
  return untilTurnMs(slot, model, nowMs) + lateMs(slot, model, ahead + 1);
}

function turnMsOnce(slot: Slot, model: ModelId, nowMs: number): () => number {
  let ms: number | undefined;
  return () => (ms ??= untilTurnMs(slot, model, nowMs));
}

/** Estimates the time until the model's next turn that begins with a switch. */
function untilTurnMs(slot: Slot, model: ModelId, nowMs: number): number {
  const { state } = slot;
  const queue = modelsInTurn(slot);
  const before = queue.includes(model) ? queue.slice(0, queue.indexOf(model)) : queue;
  let ms = untilFreeMs(slot, model, nowMs);
  const coming = state.kind === "starting" ? state.model : undefined;
  for (const other of before) if (other !== coming) ms += switchEstimateMs(slot, other) + turnMsOf(slot, other);
  return coming === model ? ms : ms + switchEstimateMs(slot, model);
}

/**
 * Lists the models whose turn begins with a switch, in order. The active model is listed if requests for it wait behind
 * another model.
 */
function modelsInTurn(slot: Slot): readonly ModelId[] {
  const engine = awakeEngine(slot.state);
  const first = engine ? slot.waiters.findIndex(({ model }) => model !== engine.model) : 0;
  return [...new Set(slot.waiters.slice(Math.max(0, first)).map(({ model }) => model))];
}

/** Returns the time until the next engine can start. */
function untilFreeMs(slot: Slot, model: ModelId, nowMs: number): number {
  const { state } = slot;
  switch (state.kind) {
    case "active":
    case "draining":
      return turnLeftMs(slot, state.engine, nowMs);
    case "starting": {
      const leftMs = Math.max(0, switchEstimateMs(slot, state.model) - (nowMs - state.beganMs));
      return state.model === model ? leftMs : leftMs + turnMsOf(slot, state.model);
    }
    case "stopping":
      return -Math.min(nowMs - state.beganMs, switchEstimateMs(slot, model));
    case "failed":
    case "stuck":
      return Math.max(0, state.retryAtMs - nowMs);
    case "adopting":
    case "empty":
      return 0;
    default:
      return unreachable(state);
  }
}

/** Returns the time until the awake engine is put to sleep or stopped, if one more request waits for another model. */
function turnLeftMs(slot: Slot, engine: Awake, nowMs: number): number {
  const { state, limits } = slot;
  const restsMs = Math.max(0, engine.sinceMs + limits.minResidencyMs - nowMs);
  const closesAtMs = Math.min(
    state.kind === "draining" ? state.closesAtMs : Math.max(nowMs, engine.sinceMs) + limits.drainOpenMsMax,
    engine.suspectedAtMs ?? Infinity,
  );
  if (nowMs >= closesAtMs) return lastingMs(slot, engine, nowMs);
  const isIdle = slot.taken === 0;
  if (isIdle) return Math.min(restsMs, closesAtMs - nowMs);
  // An average turn, as more requests may come, and no less than the requests take that are there.
  const usualMs = closesAtMs - limits.drainOpenMsMax + turnMsOf(slot, engine.model) - nowMs;
  return Math.max(restsMs, usualMs, lastingMs(slot, engine, nowMs));
}

/** Returns the time until all running answers have ended, and all answers that the same drain still admits. */
function lastingMs(slot: Slot, engine: Awake, nowMs: number): number {
  const other = slot.waiters.findIndex(({ model }) => model !== engine.model);
  const before = Math.max(0, other);
  const times = slot.held.get(engine.model) ?? { meanMs: heldMsDefault, recentMs: [] };
  const agesMs = slot.running.map(({ sinceMs }) => nowMs - sinceMs);
  return lastEndMs(times, agesMs) + (times.meanMs * before) / placesOf(slot, engine);
}

/** Like `lastingMs`, but almost surely long enough: for the `retry-after` of clients. */
export function runningMs(slot: Slot, engine: Awake, nowMs: number): number {
  const usualMs = heldEstimateMs(slot, engine.model);
  const [oldest] = slot.running;
  const leftMs = oldest ? Math.max(usualMs, lastingOn * (nowMs - oldest.sinceMs)) : 0;
  const other = slot.waiters.findIndex(({ model }) => model !== engine.model);
  const places = placesOf(slot, engine);
  const before = slot.waiters.slice(0, Math.max(0, other));
  return leftMs + (usualMs * before.reduce((sum, { answers }) => sum + placesFor(answers, places), 0)) / places;
}

/** Returns how long a turn of the model lasts while another model is waited for. */
function turnMsOf(slot: Slot, model: ModelId): number {
  return slot.turnMs.get(model) ?? slot.limits.drainOpenMsMax + heldEstimateMs(slot, model);
}

/**
 * Returns the places that other accounts get before the account's next request. Each other account counts with at most
 * as many requests as this account has.
 */
export function placesAhead(slot: Slot, model: ModelId, places: number, account?: AccountId): number {
  const wanted = new Map<AccountId, number>();
  for (const waiter of slot.waiters)
    if (waiter.model === model)
      wanted.set(waiter.account, (wanted.get(waiter.account) ?? 0) + placesFor(waiter.answers, places));
  const own = account === undefined ? Infinity : Math.max(1, wanted.get(account) ?? 0);
  return wanted.values().reduce((sum, each) => sum + Math.min(each, own), 0);
}
