/**
 * The behaviour of a slot as one pure function. The runner performs its effects: timers, processes and promises.
 *
 *   adopting ── found B awake ──▶ active(B); found B loading ─▶ starting(B), since it was started
 *      │ found none                                            all its waiters left
 *      ▼                                                     ┌───────────────────────┐
 *    empty ── request(B) ─▶ starting(B) ── started ──▶ active(B) ── request(C) ─▶ draining(B→C)
 *      ▲                      │ failed, too late             │                       │ idle, or closed and idle
 *      │ backoff over         ▼                              │ exited, suspected     ▼
 *      └────────────────── failed(B) ◀── stopped ────────────┴────────────────▶ stopping(B→C) ── stopped ─▶ starting(C)
 *                             │ lost, backoff over: starting(B)                   │ ▲ failed, too late
 *                                                                                 ▼ │ again after a pause
 *                                                                                stuck
 *
 * The numbered rules are in ARCHITECTURE.md, under "The rules of a slot".
 */
import { unreachable } from "@weiche/shared/assert.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { EngineEndpoint, FoundEngine } from "../engines/engine.ts";
import { asked, withoutHeld } from "./fair-shares.ts";
import * as move from "./slot-moves.ts";
import { heldInMs, tell, waitEstimateMs } from "./retry-after.ts";
import { admit, release, sharesOf } from "./slot-places.ts";
import { switchEstimateMs, turnEstimateMs } from "./turn-estimate.ts";
import { awakeEngine, currentEpoch, isDrainClosed } from "./slot-state.ts";
import type { Awake, RefusalKind, Slot, SlotEffect, SlotEvent, Waiter } from "./slot-state.ts";

const maintenanceRetryMs = 30_000;

export function transition(slot: Slot, event: SlotEvent, nowMs: number): readonly [Slot, readonly SlotEffect[]] {
  // An event of an operation that is not the current one is about an engine that is gone.
  if ("epoch" in event && event.epoch !== currentEpoch(slot.state)) return [slot, []];
  const effects: SlotEffect[] = [];
  const beganMs = slot.state.kind === "stopping" ? slot.state.beganMs : nowMs;
  const after = settle(apply(slot, event, nowMs, effects), beganMs, nowMs, effects);
  return [after, effects];
}

/** Applies the event alone. */
function apply(slot: Slot, event: SlotEvent, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  switch (event.kind) {
    case "request":
      return request(slot, event, nowMs, effects);
    case "left":
      return { ...slot, waiters: slot.waiters.filter((waiter) => waiter.ticket !== event.ticket) };
    case "released":
      return release(slot, event.holding, event.used, nowMs);
    case "suspected":
      return suspected(slot, nowMs, effects);
    case "readopt":
      return state.kind === "adopting" ? move.adopt(slot, 0, nowMs, effects) : slot;
    case "adopted":
      return adopted(slot, event.found, nowMs, effects);
    case "adoptFailed":
      return state.kind === "adopting" ? move.stuck(slot, undefined, nowMs, effects) : slot;
    case "started":
      return started(slot, event.endpoint, nowMs, effects);
    case "startFailed":
      return startFailed(slot, nowMs, effects);
    case "stopped":
      return stopped(slot, nowMs);
    case "stopFailed":
      return state.kind === "stopping" ? move.stuck(slot, state.model, nowMs, effects) : slot;
    case "exited":
      return exited(slot, event.model, nowMs, effects);
    case "maintenance":
      // Rule 18: no request waits in maintenance.
      if (event.on) move.refuse(slot.waiters, "maintenance", maintenanceRetryMs, effects);
      return { ...slot, maintenance: event.on, waiters: event.on ? [] : slot.waiters };
    case "prewarm":
      return awakeEngine(state)?.model === event.model ? slot : { ...slot, prewarm: event.model };
    case "tick":
      return slot;
    default:
      return unreachable(event);
  }
}

/** Handles deadlines that have passed, admits waiters, and begins the next switch. */
function settle(before: Slot, beganMs: number, nowMs: number, effects: SlotEffect[]): Slot {
  const slot = move.withoutExpired(before, nowMs, effects);
  const { state } = slot;
  switch (state.kind) {
    case "adopting":
      return nowMs < state.deadlineMs ? slot : move.stuck(slot, undefined, nowMs, effects);
    case "empty":
    case "failed":
      return rest(slot, beganMs, nowMs, effects);
    case "starting":
      if (nowMs < state.deadlineMs) return slot;
      if (!state.givenUp) return move.giveUp(slot, nowMs, effects);
      return move.stop(slot, { ...state, forGood: true, attempt: 0 }, nowMs, effects);
    case "active":
    case "draining":
      return serve(slot, state.engine, nowMs, effects);
    case "stopping":
      return nowMs < state.deadlineMs ? slot : move.stuck(slot, state.model, nowMs, effects);
    case "stuck":
      if (nowMs < state.retryAtMs) return slot;
      if (state.model === undefined) return move.adopt(slot, state.attempt + 1, nowMs, effects);
      return move.stop(
        slot,
        { ...state, model: state.model, forGood: true, attempt: state.attempt + 1 },
        nowMs,
        effects,
      );
    default:
      return unreachable(state);
  }
}

/** A request that is not refused waits. `settle` finds out whether a place is free. */
function request(
  before: Slot,
  { ticket, model, account, answers, leftMs = Infinity }: Extract<SlotEvent, { kind: "request" }>,
  nowMs: number,
  effects: SlotEffect[],
): Slot {
  // The timer may be late. Waiters whose time is over take no place of the queue.
  const slot = move.withoutExpired(before, nowMs, effects);
  const waiter: Waiter = { ticket, model, account, answers, sinceMs: nowMs };
  const { state } = slot;
  const refused = (refusal: RefusalKind, estimateMs: number, turnMs?: number) => {
    const [told, retryAfterMs] = tell(slot, waiter, { estimateMs, isQueue: refusal === "overloaded" }, nowMs);
    move.refuse([waiter], refusal, retryAfterMs, effects, turnMs);
    return told;
  };
  if (slot.maintenance) return refused("maintenance", maintenanceRetryMs);
  const engine = awakeEngine(state);
  const restsMs = move.backoffLeftMs(slot, model, nowMs);
  if (engine?.model === model && engine.suspectedAtMs === undefined) {
    // Rule 10: a closed drain takes a request only for a turn that comes in time.
    if (isDrainClosed(state, nowMs)) {
      if (slot.limits.whileSwitching === "refuse") return refused("model_switching", heldInMs(slot, engine, 0, nowMs));
      const turnMs = turnEstimateMs(slot, model, nowMs, account);
      const lateMs = turnMs - Math.min(slot.limits.waiterMsMax, leftMs);
      if (lateMs > 0) return refused("model_switching", heldInMs(slot, engine, lateMs, nowMs), turnMs);
    }
  } else if (restsMs > 0) {
    // Rule 12: a model rests until its backoff is over.
    const restartMs = engine?.model === model ? switchEstimateMs(slot, model) : 0;
    return refused("model_unavailable", Math.max(restsMs, restartMs));
  } else if (state.kind === "stuck" && nowMs < state.retryAtMs) {
    // Rule 17: a stuck slot refuses everybody.
    return refused("model_unavailable", state.retryAtMs - nowMs);
  }
  // Rule 5: each model has a queue of its own, so that no model fills the queue of another.
  const waiting = move.waitersFor(slot, model);
  if (waiting.length >= slot.limits.waitersMax)
    return refused("overloaded", waitEstimateMs(slot, model, nowMs, account));
  const shares = new Map(slot.shares).set(model, asked(sharesOf(slot, model), account, waiting, nowMs));
  return { ...slot, shares, waiters: [...slot.waiters, waiter] };
}

function adopted(slot: Slot, found: FoundEngine | undefined, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  if (state.kind !== "adopting") return slot;
  if (!found) return move.enter(slot, { kind: "empty" }, nowMs);
  const { model } = found;
  if ("endpoint" in found)
    return activated(slot, { model, endpoint: found.endpoint, epoch: state.epoch, sinceMs: nowMs }, nowMs, effects);
  return move.start(
    slot,
    { model, restart: false, beganMs: nowMs - found.loadingForMs, adopted: true },
    nowMs,
    effects,
  );
}

function activated(slot: Slot, engine: Awake, nowMs: number, effects: SlotEffect[]): Slot {
  const active = move.enter(move.withoutPrewarm(slot, engine.model), { kind: "active", engine }, nowMs);
  return admit(active, engine, active.waiters, { isOpen: true, nowMs }, effects);
}

function started(slot: Slot, endpoint: EngineEndpoint, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  if (state.kind !== "starting") return slot;
  const { model, epoch, restart } = state;
  // The engine came up after its start was given up, so it may not be sound.
  if (state.givenUp) return move.stop(slot, { model, forGood: true, restart, attempt: 0 }, nowMs, effects);
  const known = state.adopted ? slot : move.measured(slot, model, nowMs - state.beganMs);
  return activated(known, { model, epoch, endpoint, sinceMs: nowMs }, nowMs, effects);
}

function startFailed(slot: Slot, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  if (state.kind !== "starting") return slot;
  const counted = state.givenUp ? slot : move.fail(slot, state.model, 0, nowMs, effects);
  return move.emptied(counted, state.model, state.restart, nowMs);
}

function suspected(slot: Slot, nowMs: number, effects: SlotEffect[]): Slot {
  const engine = awakeEngine(slot.state);
  if (!engine || engine.suspectedAtMs !== undefined) return slot;
  const counted = move.failRunning(slot, engine, nowMs, effects);
  return { ...counted, state: { kind: "active", engine: { ...engine, suspectedAtMs: nowMs } } };
}

function exited(slot: Slot, model: ModelId, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  if (state.kind === "adopting") return move.stuck(slot, undefined, nowMs, effects);
  if (state.kind === "starting" && state.model === model) return move.giveUp(slot, nowMs, effects);
  const engine = awakeEngine(state);
  if (engine?.model !== model) return slot;
  effects.push({ kind: "engineLost" });
  const counted = engine.suspectedAtMs === undefined ? move.failRunning(slot, engine, nowMs, effects) : slot;
  // The requests of a lost engine hold no places, even if they notice it later.
  const shares = new Map(counted.shares).set(model, withoutHeld(sharesOf(counted, model)));
  const gone = { ...counted, taken: 0, running: [], shares };
  // Rule 16: the memory of an engine that is gone must be free before another one starts.
  return move.stop(gone, { model, forGood: true, restart: true, attempt: 0 }, nowMs, effects);
}

/** Rule 1: admits waiters, and stops the engine when it is time. This is the only place where a switch begins. */
function serve(before: Slot, engine: Awake, nowMs: number, effects: SlotEffect[]): Slot {
  const { model } = engine;
  const suspect = engine.suspectedAtMs !== undefined;
  const other = before.waiters.find((waiter) => waiter.model !== model);
  const closesAtMs = closingTimeMs(before, engine, other);
  const closed = nowMs >= closesAtMs;
  // Rule 9: a closed drain admits only waiters that came before the first one for another model.
  const older = closed ? before.waiters.slice(0, other ? before.waiters.indexOf(other) : 0) : before.waiters;
  const slot = suspect ? before : admit(before, engine, older, { isOpen: !closed, nowMs }, effects);

  const next = other?.model ?? (suspect ? model : duePrewarm(slot, nowMs));
  // Rule 2: an idle engine keeps its slot for the minimum residency.
  const rested = nowMs >= engine.sinceMs + slot.limits.minResidencyMs;
  // Rule 4: an engine stops only when nothing runs on it.
  if (next !== undefined && slot.taken === 0 && (closed || rested) && !slot.maintenance) {
    const left = suspect ? slot : move.forgive(move.turnEnded(slot, engine, other, nowMs), engine, nowMs);
    return move.stop(left, { model, forGood: suspect, restart: suspect, attempt: 0 }, nowMs, effects);
  }
  if (next === undefined || closesAtMs === Infinity)
    return slot.state.kind === "active" ? slot : move.enter(slot, { kind: "active", engine }, nowMs);
  return move.enter(slot, { kind: "draining", engine, next, closesAtMs }, nowMs);
}

/** Rule 3: a drain closes on time, even if the waiter that began it has left. It ends early only with its last waiter. */
function closingTimeMs({ state, limits }: Slot, engine: Awake, other: Waiter | undefined): number {
  const suspectedAtMs = engine.suspectedAtMs ?? Infinity;
  if (!other) return suspectedAtMs;
  const begunMs = state.kind === "draining" ? state.closesAtMs : Infinity;
  return Math.min(suspectedAtMs, begunMs, Math.max(other.sinceMs, engine.sinceMs) + limits.drainOpenMsMax);
}

function duePrewarm(slot: Slot, nowMs: number): ModelId | undefined {
  return slot.prewarm !== undefined && move.backoffLeftMs(slot, slot.prewarm, nowMs) === 0 ? slot.prewarm : undefined;
}

function stopped(slot: Slot, nowMs: number): Slot {
  const { state } = slot;
  return state.kind === "stopping" ? move.emptied(slot, state.model, state.restart, nowMs) : slot;
}

/** Rule 11: the oldest waiter's model is next, then a restart that is due (rule 14), then a model to prewarm. */
function rest(slot: Slot, beganMs: number, nowMs: number, effects: SlotEffect[]): Slot {
  const { state } = slot;
  if (slot.maintenance) return slot;
  const due = state.kind === "failed" && nowMs >= state.retryAtMs;
  const lost = state.kind === "failed" && state.restart ? state.model : undefined;
  const model = slot.waiters[0]?.model ?? (due ? lost : undefined) ?? duePrewarm(slot, nowMs);
  if (model !== undefined) return move.start(slot, { model, restart: model === lost, beganMs }, nowMs, effects);
  return due ? move.enter(slot, { kind: "empty" }, nowMs) : slot;
}
