/**
 * When a refused request may come back: after how long it is admitted, or held for its model's next turn. Many requests that
 * are refused together are told different times, so that they do not come back in the same second.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import { placesFor } from "./slot-places.ts";
import { awakeEngine, placesOf } from "./slot-state.ts";
import type { Awake, Slot, Waiter } from "./slot-state.ts";

/** Assumed time from the stop of the old engine to the proof of the new one, for a model that was not started yet. */
const switchMsDefault = 10_000;
/** Assumed time for which a request holds its places, until one of the model has ended. */
const heldMsDefault = 10_000;
const retryMsMin = 1_000;
const retryMsMax = 300_000;
/** Official client libraries ignore a `retry-after` of 60 s or more, and try again at once. */
const drainRetryMsMax = 59_000;
/** An answer that has run for a time is expected to run for so many times as long from now on. */
const lastingOn = 1.5;
/** Time between two requests that come back to be held. */
const returnGapMs = 100;
/** A client is told at most so much more than its request needs. */
const spreadMsMax = 5_000;

export function switchEstimateMs(slot: Slot, model: ModelId): number {
  return slot.switchMs.get(model) ?? switchMsDefault;
}

function heldEstimateMs(slot: Slot, model: ModelId): number {
  return slot.heldMs.get(model) ?? heldMsDefault;
}

/** Estimated time until a closed drain ends. From then on a request for its model is held for the next turn. */
export function drainLeftMs(slot: Slot, engine: Awake, nowMs: number): number {
  const usualMs = heldEstimateMs(slot, engine.model);
  const [oldest] = slot.running;
  const runningMs = oldest ? Math.max(usualMs, lastingOn * (nowMs - oldest.sinceMs)) : 0;
  const other = slot.waiters.findIndex(({ model }) => model !== engine.model);
  const places = placesOf(slot, engine);
  const before = slot.waiters.slice(0, Math.max(0, other));
  const turns = before.reduce((sum, { answers }) => sum + placesFor(answers, places), 0) / places;
  return Math.min(drainRetryMsMax, Math.max(retryMsMin, runningMs + usualMs * turns));
}

/**
 * Estimated wait of one more request of the account: for places of an engine that takes requests, else for the end of the
 * drain and a switch. Of other accounts those count that are served before it.
 */
export function waitEstimateMs(slot: Slot, model: ModelId, nowMs: number, account?: AccountId): number {
  const { state } = slot;
  const engine = awakeEngine(state);
  // A drain ends with its last waiter, who may have left just now.
  const isForOthers = slot.waiters.some((waiter) => waiter.model !== model);
  const isClosed = state.kind === "draining" && nowMs >= state.closesAtMs && isForOthers;
  if (engine?.model !== model || engine.suspectedAtMs !== undefined || isClosed) return switchEstimateMs(slot, model);
  const places = placesOf(slot, engine);
  const wanted = new Map<AccountId, number>();
  for (const waiter of slot.waiters)
    if (waiter.model === model)
      wanted.set(waiter.account, (wanted.get(waiter.account) ?? 0) + placesFor(waiter.answers, places));
  const own = account === undefined ? Infinity : Math.max(1, wanted.get(account) ?? 0);
  const before = wanted.values().reduce((sum, each) => sum + Math.min(each, own), 0);
  const waitMs = (heldEstimateMs(slot, model) * before) / places;
  return Math.min(retryMsMax, Math.max(retryMsMin, waitMs));
}

/**
 * Time that the client of this request is told, after those that were told before, and the slot that remembers it. A full
 * queue has room for one more request each time that places get free; a drain ends for all at once.
 */
export function tell(
  slot: Slot,
  { model, answers }: Waiter,
  { estimateMs, isQueue }: { readonly estimateMs: number; readonly isQueue: boolean },
  nowMs: number,
): readonly [Slot, number] {
  const engine = awakeEngine(slot.state);
  const places = engine && placesOf(slot, engine);
  const gapMs = isQueue && places ? (heldEstimateMs(slot, model) * placesFor(answers, places)) / places : returnGapMs;
  const latestMs =
    nowMs + (isQueue ? retryMsMax : Math.max(estimateMs, Math.min(estimateMs + spreadMsMax, drainRetryMsMax)));
  const toldMs = slot.toldMs.get(model);
  const atMs = Math.max(nowMs + estimateMs, Math.min(latestMs, (toldMs ?? -Infinity) + gapMs));
  return [{ ...slot, toldMs: new Map(slot.toldMs).set(model, atMs) }, atMs - nowMs];
}
