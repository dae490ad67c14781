/** The steps of a slot's transition. Each takes a slot, adds effects, and returns the next slot. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { waitEstimateMs } from "./retry-after.ts";
import type { Awake, RefusalKind, Slot, SlotEffect, SlotState, Waiter } from "./slot-state.ts";

/** The weights of the newest switch and the newest turn in their moving averages. Turns vary more than switches. */
const newestWeight = 0.3;
const newestTurnWeight = 0.1;

export function enter(slot: Slot, state: SlotState, nowMs: number): Slot {
  return { ...slot, state, stateSinceMs: state.kind === slot.state.kind ? slot.stateSinceMs : nowMs };
}

export function adopt(slot: Slot, attempt: number, nowMs: number, effects: SlotEffect[]): Slot {
  const epoch = slot.epoch + 1;
  effects.push({ kind: "adopt", epoch });
  const deadlineMs = nowMs + slot.limits.stopMsMax;
  return { ...enter(slot, { kind: "adopting", epoch, deadlineMs, attempt }, nowMs), epoch };
}

/** The minimum time for an adopted engine. One that exceeded its start time may be ready by now. */
const adoptedMsMin = 10_000;

interface Start {
  readonly model: ModelId;
  readonly restart: boolean;
  /** When the switch began, including the stop of the previous engine. */
  readonly beganMs: number;
  readonly adopted?: boolean;
}

export function start(slot: Slot, given: Start, nowMs: number, effects: SlotEffect[]): Slot {
  const { model, restart, beganMs, adopted = false } = given;
  const epoch = slot.epoch + 1;
  effects.push({ kind: "start", model, epoch });
  const { startMsMax } = slot.limits;
  const deadlineMs = adopted ? Math.max(beganMs + startMsMax, nowMs + adoptedMsMin) : nowMs + startMsMax;
  const state: SlotState = { kind: "starting", model, epoch, beganMs, adopted, deadlineMs, givenUp: false, restart };
  return { ...enter(withoutPrewarm(slot, model), state, nowMs), epoch };
}

interface Stop {
  readonly model: ModelId;
  readonly forGood: boolean;
  readonly restart: boolean;
  readonly attempt: number;
}

export function stop(
  slot: Slot,
  { model, forGood, restart, attempt }: Stop,
  nowMs: number,
  effects: SlotEffect[],
): Slot {
  const epoch = slot.epoch + 1;
  effects.push({ kind: "stop", model, epoch, forGood });
  const deadlineMs = nowMs + slot.limits.stopMsMax;
  const state: SlotState = { kind: "stopping", model, epoch, beganMs: nowMs, deadlineMs, attempt, restart };
  return { ...enter(slot, state, nowMs), epoch };
}

/** Ends an attempt to start. Nothing else may begin until the operation reports that it has cleaned up. */
export function giveUp(slot: Slot, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  if (state.kind !== "starting" || state.givenUp) return slot;
  effects.push({ kind: "giveUp" });
  const givenUp: SlotState = { ...state, givenUp: true, deadlineMs: nowMs + slot.limits.stopMsMax };
  return { ...fail(slot, state.model, 0, nowMs, effects), state: givenUp, stateSinceMs: nowMs };
}

/** Rule 17: refuses every request until the old engine is known to be gone. It may still be awake. */
export function stuck(slot: Slot, model: ModelId | undefined, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  const attempt = "attempt" in state ? state.attempt : 0;
  const pauseMs = backoffMs(slot, attempt);
  refuse(slot.waiters, "model_unavailable", pauseMs, effects);
  const restart = "restart" in state && state.restart;
  const next: SlotState = { kind: "stuck", model, retryAtMs: nowMs + pauseMs, attempt, restart };
  return enter({ ...slot, waiters: [] }, next, nowMs);
}

/** Returns the slot without an engine: empty, or failed while the model's backoff lasts. */
export function emptied(slot: Slot, model: ModelId, restart: boolean, nowMs: number): Slot {
  const retryAtMs = slot.backoff.get(model)?.untilMs ?? 0;
  if (!restart && retryAtMs <= nowMs) return enter(slot, { kind: "empty" }, nowMs);
  return enter(slot, { kind: "failed", model, retryAtMs, restart }, nowMs);
}

/** Rule 12: counts a failure after a run of `ranMs` and refuses the model's waiters. */
export function fail(slot: Slot, model: ModelId, ranMs: number, nowMs: number, effects: SlotEffect[]): Slot {
  const before = failuresBefore(slot, model, ranMs);
  const pauseMs = backoffMs(slot, before);
  refuse(waitersFor(slot, model), "model_unavailable", pauseMs, effects);
  return {
    ...slot,
    waiters: slot.waiters.filter((waiter) => waiter.model !== model),
    backoff: new Map(slot.backoff).set(model, { failures: before + 1, untilMs: nowMs + pauseMs, ranMs: 0 }),
  };
}

/** Rule 13: after the first exit or suspicion the engine is restarted without a pause, and its waiters stay. */
export function failRunning(slot: Slot, { model, sinceMs }: Awake, nowMs: number, effects: SlotEffect[]): Slot {
  if (failuresBefore(slot, model, nowMs - sinceMs) > 0) return fail(slot, model, nowMs - sinceMs, nowMs, effects);
  return { ...slot, backoff: new Map(slot.backoff).set(model, { failures: 1, untilMs: nowMs, ranMs: 0 }) };
}

function failuresBefore(slot: Slot, model: ModelId, ranMs: number): number {
  const backoff = slot.backoff.get(model);
  return !backoff || backoff.ranMs + ranMs >= slot.limits.backoffMsMax ? 0 : backoff.failures;
}

/** Rule 15: adds the turn that ends now to the model's runs since its last failure. If they suffice, forgets the failures. */
export function forgive(slot: Slot, { model, sinceMs }: Awake, nowMs: number): Slot {
  const backoff = slot.backoff.get(model);
  if (!backoff) return slot;
  const ranMs = backoff.ranMs + nowMs - sinceMs;
  const isOver = ranMs >= slot.limits.backoffMsMax;
  return {
    ...slot,
    backoff: isOver ? without(slot.backoff, model) : new Map(slot.backoff).set(model, { ...backoff, ranMs }),
  };
}

export function refuse(
  waiters: readonly Waiter[],
  refusal: RefusalKind,
  retryAfterMs: number,
  effects: SlotEffect[],
  turnMs?: number,
): void {
  for (const { ticket } of waiters) effects.push({ kind: "refuse", ticket, refusal, retryAfterMs, turnMs });
}

/** Rule 5: refuses requests that have waited for too long. */
export function withoutExpired(slot: Slot, nowMs: number, effects: SlotEffect[]): Slot {
  const isExpired = ({ sinceMs }: Waiter) => nowMs >= sinceMs + slot.limits.waiterMsMax;
  const [oldest] = slot.waiters;
  if (!oldest || !isExpired(oldest)) return slot;
  const expired = slot.waiters.filter(isExpired);
  const staying = { ...slot, waiters: slot.waiters.slice(expired.length) };
  for (const waiter of expired)
    refuse([waiter], "overloaded", waitEstimateMs(staying, waiter.model, nowMs, waiter.account), effects);
  return staying;
}

export function withoutPrewarm(slot: Slot, model: ModelId): Slot {
  if (slot.prewarm !== model) return slot;
  return { ...slot, prewarm: undefined };
}

function without<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}

export function waitersFor(slot: Slot, model: ModelId): readonly Waiter[] {
  return slot.waiters.filter((waiter) => waiter.model === model);
}

export function backoffLeftMs(slot: Slot, model: ModelId, nowMs: number): number {
  return Math.max(0, (slot.backoff.get(model)?.untilMs ?? 0) - nowMs);
}

export function measured(slot: Slot, model: ModelId, tookMs: number): Slot {
  const before = slot.switchMs.get(model) ?? tookMs;
  return { ...slot, switchMs: new Map(slot.switchMs).set(model, before + newestWeight * (tookMs - before)) };
}

/** Records how long the model's turn lasted from when another model was waited for. */
export function turnEnded(slot: Slot, { model, sinceMs }: Awake, other: Waiter | undefined, nowMs: number): Slot {
  if (!other) return slot;
  const tookMs = nowMs - Math.max(sinceMs, other.sinceMs);
  const before = slot.turnMs.get(model) ?? tookMs;
  return { ...slot, turnMs: new Map(slot.turnMs).set(model, before + newestTurnWeight * (tookMs - before)) };
}

function backoffMs(slot: Slot, before: number): number {
  return Math.min(slot.limits.backoffMsMax, slot.limits.backoffMsMin * 2 ** Math.min(before, 30));
}
