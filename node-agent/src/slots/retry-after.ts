/**
 * When a refused request may come back: after how long it is admitted, or held for its model's turn. Many requests that
 * are refused together are told different times, so that they do not come back in the same second.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import { placesFor } from "./slot-places.ts";
import { awakeEngine, placesOf } from "./slot-state.ts";
import type { Awake, Slot, Waiter } from "./slot-state.ts";
import { heldEstimateMs, placesAhead, runningMs, turnEstimateMs } from "./turn-estimate.ts";

const retryMsMin = 1_000;
const retryMsMax = 300_000;
/** Official client libraries ignore a `retry-after` of 60 s or more, and try again at once. */
const obeyedMsMax = 59_000;
/** Time between two requests that come back to be held. */
const returnGapMs = 100;
/** A client is told at most so much more than its request needs. */
const spreadMsMax = 5_000;

/**
 * Estimated time until a request that a closed drain refuses is held for its model's next turn: when the drain has ended,
 * and that turn, now `lateMs` too late, comes in time. If nobody is held for it, no turn comes before the client does. So
 * all are told a time that clients obey, with room for `spreadMsMax`.
 */
export function heldInMs(slot: Slot, engine: Awake, lateMs: number, nowMs: number): number {
  return Math.min(obeyedMsMax - spreadMsMax, Math.max(retryMsMin, runningMs(slot, engine, nowMs), lateMs));
}

/** Estimated wait of one more request of the account: for places of an engine that takes requests, else for its turn. */
export function waitEstimateMs(slot: Slot, model: ModelId, nowMs: number, account?: AccountId): number {
  const { state } = slot;
  const engine = awakeEngine(state);
  // A drain ends with its last waiter, who may have left just now.
  const isForOthers = slot.waiters.some((waiter) => waiter.model !== model);
  const isClosed = state.kind === "draining" && nowMs >= state.closesAtMs && isForOthers;
  const bounded = (ms: number) => Math.min(retryMsMax, Math.max(retryMsMin, ms));
  if (engine?.model !== model || engine.suspectedAtMs !== undefined || isClosed)
    return bounded(turnEstimateMs(slot, model, nowMs, account));
  const places = placesOf(slot, engine);
  return bounded((heldEstimateMs(slot, model) * placesAhead(slot, model, places, account)) / places);
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
    nowMs + (isQueue ? retryMsMax : Math.max(estimateMs, Math.min(estimateMs + spreadMsMax, obeyedMsMax)));
  const toldMs = slot.toldMs.get(model);
  const atMs = Math.max(nowMs + estimateMs, Math.min(latestMs, (toldMs ?? -Infinity) + gapMs));
  return [{ ...slot, toldMs: new Map(slot.toldMs).set(model, atMs) }, atMs - nowMs];
}
