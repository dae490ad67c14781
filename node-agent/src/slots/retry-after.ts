/**
 * Computes when a refused request may come back: after this time it is admitted, or held for its model's turn. Many
 * requests that are refused together get different times, so that they do not all come back in the same second.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import { placesFor } from "./slot-places.ts";
import { awakeEngine, isDrainClosed, placesOf } from "./slot-state.ts";
import type { Awake, Slot, Waiter } from "./slot-state.ts";
import { heldEstimateMs, placesAhead, runningMs, turnEstimateMs } from "./turn-estimate.ts";

const retryMsMin = 1_000;
const retryMsMax = 300_000;
/** Official client libraries ignore a `retry-after` of 60 s or more, and try again at once. */
const obeyedMsMax = 59_000;
/** The time between two requests that come back to be held. */
const returnGapMs = 100;
/** The most that is added to the time that a request needs. */
const spreadMsMax = 5_000;

/**
 * Estimates the time until a request that a closed drain refuses is held for its model's next turn. By then the drain
 * has ended, and the turn, now `lateMs` too late, comes in time. If no request is held for the turn, no turn comes
 * before the client does. All clients therefore get a time that they obey, with room for `spreadMsMax`.
 */
export function heldInMs(slot: Slot, engine: Awake, lateMs: number, nowMs: number): number {
  return Math.min(obeyedMsMax - spreadMsMax, Math.max(retryMsMin, runningMs(slot, engine, nowMs), lateMs));
}

/**
 * Estimates the wait of one more request of the account, for a place if the engine admits requests, otherwise for its
 * turn.
 */
export function waitEstimateMs(slot: Slot, model: ModelId, nowMs: number, account?: AccountId): number {
  const { state } = slot;
  const engine = awakeEngine(state);
  // A drain ends with its last waiter, which may have left just now.
  const isForOthers = slot.waiters.some((waiter) => waiter.model !== model);
  const isClosed = isDrainClosed(state, nowMs) && isForOthers;
  const bounded = (ms: number) => Math.min(retryMsMax, Math.max(retryMsMin, ms));
  if (engine?.model !== model || engine.suspectedAtMs !== undefined || isClosed)
    return bounded(turnEstimateMs(slot, model, nowMs, account));
  const places = placesOf(slot, engine);
  return bounded((heldEstimateMs(slot, model) * placesAhead(slot, model, places, account)) / places);
}

/**
 * Returns the time for this client, after the times of earlier clients, and the slot that remembers it. A full queue
 * has room for one more request each time places become free. A drain ends for all requests at once.
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
    nowMs + (isQueue ? retryMsMax : Math.max(estimateMs, Math.min(estimateMs + spreadMsMax, obeyedMsMax)));
  const toldMs = slot.toldMs.get(model);
  const atMs = Math.max(nowMs + estimateMs, Math.min(latestMs, (toldMs ?? -Infinity) + gapMs));
  return [{ ...slot, toldMs: new Map(slot.toldMs).set(model, atMs) }, atMs - nowMs];
}
