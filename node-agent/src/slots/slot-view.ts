/**
 * The view of a slot for load reports, metrics, `weiche-agent status` and the choice among slots, in the words of the
 * protocol.
 */
import { SlotState as WireState, type SlotLoad } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { stateWords, type KnownSlotState } from "@weiche/proto/words.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { unreachable } from "@weiche/shared/assert.ts";
import type { ServedModels, Sleeper, SwitchPhase } from "../engines/engine.ts";
import { awakeEngine, isDrainClosed, placesOf, type Slot, type SlotState, type Ticket } from "./slot-state.ts";
import { nextAndLastMs } from "./turn-estimate.ts";

export { stateWords, WireState };

/** A slot's state as a word, for people and metrics. */
export type SlotStateWord = (typeof stateWords)[ShownState];
export type ShownState = KnownSlotState;

/** The part of a report that is the same for every router, plus fields for this host only. Times may have fractions. */
export interface SlotView extends Omit<SlotLoad, "runningOfRouter" | "engine" | "history" | "failures"> {
  readonly name: SlotName;
  readonly models: readonly ModelId[];
  readonly state: ShownState;
  /** The model that the slot serves, starts or stops. */
  readonly activeModel?: ModelId;
  /** All models of that engine. Undefined if it serves one. */
  readonly activeModels?: readonly ModelId[];
  readonly nextModel?: ModelId;
  /** All models of the engine that comes next. Undefined if it serves one. */
  readonly nextModels?: readonly ModelId[];
  readonly runningByRouter: ReadonlyMap<string, number>;
  readonly waiting: number;
  /** The age of the oldest held request. Undefined if none is held. */
  readonly oldestWaitingMs?: number;
  /** A start or stop in progress: its age, its phase, and the usual time of a switch to the coming model. */
  readonly switching?: { readonly ageMs: number; readonly phase?: SwitchPhase; readonly usualMs?: number };
  readonly sleepers: readonly Sleeper[];
}

/** A request that holds places of the awake engine. */
export interface Running {
  readonly routerId: string;
  readonly places: number;
  readonly sinceMs: number;
}

/** `state`: the state or the next model has changed. `load`: only counts have changed. */
export type SlotChange = "state" | "load";

/** The parts of a view that are not in the slot's state. */
interface Surroundings {
  readonly name: SlotName;
  readonly engines: readonly ServedModels[];
  /** All models of the engines. */
  readonly models: readonly ModelId[];
  /** The model of a waiting request. Undefined if its client has left just now. */
  readonly askedOf: (ticket: Ticket) => ModelId | undefined;
  /** Oldest first. */
  readonly running: readonly Running[];
  readonly sleepers: readonly Sleeper[];
  readonly phase?: SwitchPhase;
}

export function viewOf(slot: Slot, surroundings: Surroundings, nowMs: number): SlotView {
  const { name, engines, models, running, sleepers, phase } = surroundings;
  const { state } = slot;
  const engine = awakeEngine(state);
  const shown = shownState(state, nowMs);
  const several = (model: ModelId | undefined) => engines.find((one) => one.model === model)?.models;
  return {
    name,
    models,
    state: shown,
    activeModel: activeOf(state),
    activeModels: several(activeOf(state)),
    nextModel: nextOf(slot),
    nextModels: several(nextOf(slot)),
    running: slot.taken,
    runningByRouter: sum(running, ({ routerId, places }) => [routerId, places]),
    waiting: slot.waiters.reduce((total, { answers }) => total + answers, 0),
    oldestWaitingMs: slot.waiters[0] && nowMs - slot.waiters[0].sinceMs,
    waiters: slot.waiters.length === 0 ? [] : waitersOf(slot, surroundings, nowMs),
    oldestRunningMs: running[0] && nowMs - running[0].sinceMs,
    closesInMs: state.kind === "draining" && nowMs < state.closesAtMs ? state.closesAtMs - nowMs : undefined,
    stateAgeMs: nowMs - (shown === WireState.DRAINING_CLOSED ? closedSinceMs(slot) : slot.stateSinceMs),
    switching: "beganMs" in state ? switchingOf(slot, nowMs - state.beganMs, phase) : undefined,
    maxConcurrent: engine && placesOf(slot, engine),
    retryInMs: "retryAtMs" in state ? Math.max(0, state.retryAtMs - nowMs) : undefined,
    sleepers,
  };
}

function waitersOf(slot: Slot, { askedOf }: Surroundings, nowMs: number): SlotView["waiters"] {
  const byModel = Map.groupBy(slot.waiters, ({ ticket, model }) => askedOf(ticket) ?? model);
  return Array.from(byModel, ([model, own]) => {
    const [nextServedMs, lastServedMs] = nextAndLastMs(slot, own, nowMs);
    const waiting = own.reduce((total, { answers }) => total + answers, 0);
    return { model, waiting, nextServedMs, lastServedMs };
  });
}

export function activeOf(state: SlotState): ModelId | undefined {
  return "model" in state ? state.model : awakeEngine(state)?.model;
}

export function shownState(state: SlotState, nowMs: number): ShownState {
  switch (state.kind) {
    case "empty":
      return WireState.EMPTY;
    case "adopting":
      return WireState.STARTING;
    case "starting":
      return state.givenUp ? WireState.STOPPING : WireState.STARTING;
    case "active":
      return WireState.ACTIVE;
    case "draining":
      return isDrainClosed(state, nowMs) ? WireState.DRAINING_CLOSED : WireState.DRAINING_OPEN;
    case "stopping":
      return WireState.STOPPING;
    case "failed":
    case "stuck":
      return WireState.FAILED;
    default:
      return unreachable(state);
  }
}

/** Returns the model that comes next. */
export function nextOf({ state, waiters, prewarm }: Slot): ModelId | undefined {
  if (state.kind === "draining") return state.next;
  if (state.kind === "stopping") return waiters[0]?.model ?? (state.restart ? state.model : prewarm);
  return undefined;
}

function switchingOf(slot: Slot, ageMs: number, phase?: SwitchPhase): NonNullable<SlotView["switching"]> {
  const model = slot.state.kind === "starting" ? slot.state.model : nextOf(slot);
  return { ageMs, phase, usualMs: model && slot.switchMs.get(model) };
}

/** Since when the drain is closed. A drain may have begun after the time at which it would have closed. */
function closedSinceMs({ state, stateSinceMs }: Slot): number {
  return state.kind === "draining" ? Math.max(state.closesAtMs, stateSinceMs) : stateSinceMs;
}

function sum<One, Key>(ones: readonly One[], counted: (one: One) => readonly [Key, number]): ReadonlyMap<Key, number> {
  const sums = new Map<Key, number>();
  for (const one of ones) {
    const [key, count] = counted(one);
    sums.set(key, (sums.get(key) ?? 0) + count);
  }
  return sums;
}
