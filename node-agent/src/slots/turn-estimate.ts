/** When a request is admitted that waits for a turn of its model: after all turns and switches before it. */
import { unreachable } from "@weiche/shared/assert.ts";
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import { placesFor } from "./slot-places.ts";
import { awakeEngine, placesOf } from "./slot-state.ts";
import type { Awake, Slot } from "./slot-state.ts";

/** Assumed time from the stop of the old engine to the proof of the new one, for a model that was not started yet. */
const switchMsDefault = 10_000;
/** Assumed time for which a request holds its places, until one of the model has ended. */
const heldMsDefault = 10_000;
/** An answer that has run for a time is expected to run for so many times as long from now on. */
const lastingOn = 1.5;

export function switchEstimateMs(slot: Slot, model: ModelId): number {
  return slot.switchMs.get(model) ?? switchMsDefault;
}

export function heldEstimateMs(slot: Slot, model: ModelId): number {
  return slot.heldMs.get(model) ?? heldMsDefault;
}

/** Estimated time until one more request for the model is admitted, if it has to wait for a switch. */
export function turnEstimateMs(slot: Slot, model: ModelId, nowMs: number, account?: AccountId): number {
  const { state } = slot;
  const queue = modelsInTurn(slot);
  const before = queue.includes(model) ? queue.slice(0, queue.indexOf(model)) : queue;
  let ms = untilFreeMs(slot, model, nowMs);
  const coming = state.kind === "starting" ? state.model : undefined;
  for (const other of before) if (other !== coming) ms += switchEstimateMs(slot, other) + turnMsOf(slot, other);
  if (coming !== model) ms += switchEstimateMs(slot, model);
  return ms + queueMs(slot, model, slot.maxConcurrent.get(model) ?? 1, account);
}

/** The models whose turn comes by a switch, in order. Of the active one only what is not served before it. */
function modelsInTurn(slot: Slot): readonly ModelId[] {
  const engine = awakeEngine(slot.state);
  const first = engine ? slot.waiters.findIndex(({ model }) => model !== engine.model) : 0;
  return [...new Set(slot.waiters.slice(Math.max(0, first)).map(({ model }) => model))];
}

/** Time until nothing is in the way of the next start. */
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

/** Time until the awake engine is put away, if one more request for another model waits. */
function turnLeftMs(slot: Slot, engine: Awake, nowMs: number): number {
  const { state, limits } = slot;
  const restsMs = Math.max(0, engine.sinceMs + limits.minResidencyMs - nowMs);
  const closesAtMs = Math.min(
    state.kind === "draining" ? state.closesAtMs : Math.max(nowMs, engine.sinceMs) + limits.drainOpenMsMax,
    engine.suspectedAtMs ?? Infinity,
  );
  if (nowMs >= closesAtMs) return lastingMs(slot, engine);
  const isIdle = slot.taken === 0;
  if (isIdle) return Math.min(restsMs, closesAtMs - nowMs);
  const begunMs = closesAtMs - limits.drainOpenMsMax;
  return Math.max(restsMs, begunMs + turnMsOf(slot, engine.model) - nowMs);
}

/** Time until the last of the running answers ends, if their times are exponential, and what waits for the same drain. */
function lastingMs(slot: Slot, engine: Awake): number {
  const other = slot.waiters.findIndex(({ model }) => model !== engine.model);
  const before = Math.max(0, other);
  let sum = 0;
  for (let n = 1; n <= slot.running.length; n++) sum += 1 / n;
  return heldEstimateMs(slot, engine.model) * (sum + before / placesOf(slot, engine));
}

/** The time after which all that runs has almost surely ended, and what waits for the same drain: for clients that come back. */
export function runningMs(slot: Slot, engine: Awake, nowMs: number): number {
  const usualMs = heldEstimateMs(slot, engine.model);
  const [oldest] = slot.running;
  const leftMs = oldest ? Math.max(usualMs, lastingOn * (nowMs - oldest.sinceMs)) : 0;
  const other = slot.waiters.findIndex(({ model }) => model !== engine.model);
  const places = placesOf(slot, engine);
  const before = slot.waiters.slice(0, Math.max(0, other));
  return leftMs + (usualMs * before.reduce((sum, { answers }) => sum + placesFor(answers, places), 0)) / places;
}

/** How long a turn of the model lasts while another one is waited for. */
function turnMsOf(slot: Slot, model: ModelId): number {
  return slot.turnMs.get(model) ?? slot.limits.drainOpenMsMax + heldEstimateMs(slot, model);
}

/** Time to serve the waiters before the account's next request. Each other account counts with at most as many as this one has. */
export function queueMs(slot: Slot, model: ModelId, places: number, account?: AccountId): number {
  const ahead = placesAhead(slot, model, places, account);
  return heldEstimateMs(slot, model) * Math.floor(ahead / places);
}

export function placesAhead(slot: Slot, model: ModelId, places: number, account?: AccountId): number {
  const wanted = new Map<AccountId, number>();
  for (const waiter of slot.waiters)
    if (waiter.model === model)
      wanted.set(waiter.account, (wanted.get(waiter.account) ?? 0) + placesFor(waiter.answers, places));
  const own = account === undefined ? Infinity : Math.max(1, wanted.get(account) ?? 0);
  return wanted.values().reduce((sum, each) => sum + Math.min(each, own), 0);
}
