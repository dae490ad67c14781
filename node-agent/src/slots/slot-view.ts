/** How a slot looks from outside: what load reports, metrics and the choice among slots are made of. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { unreachable } from "@weiche/shared/assert.ts";
import type { EngineEndpoint, EngineSpec, Sleeper, SwitchPhase } from "../engines/engine.ts";
import { awakeEngine, placesOf, type Slot, type SlotState } from "./slot-state.ts";

export type SlotKind = "empty" | "starting" | "active" | "draining-open" | "draining-closed" | "stopping" | "failed";

export interface SlotView {
  readonly name: SlotName;
  readonly models: readonly ModelId[];
  readonly kind: SlotKind;
  /** Model that the slot serves, starts or stops. */
  readonly active?: ModelId;
  /** Model that comes after it. */
  readonly next?: ModelId;
  /** Answers that are made: a request with `n` answers counts `n`, as in `waiting`. */
  readonly running: number;
  readonly runningByRouter: ReadonlyMap<string, number>;
  readonly waiting: number;
  readonly waitingByModel: ReadonlyMap<ModelId, number>;
  readonly oldestRunningMs?: number;
  readonly closesInMs?: number;
  readonly stateAgeMs: number;
  /** A start or stop in progress: for how long, what it is at, how long activating the model that comes usually takes. */
  readonly switching?: { readonly ageMs: number; readonly phase?: SwitchPhase; readonly usualMs?: number };
  /** Places of the engine: most answers at once. */
  readonly maxConcurrent?: number;
  readonly retryInMs?: number;
  readonly sleepers: readonly Sleeper[];
}

/** A request that holds places of the awake engine. */
export interface Running {
  readonly routerId: string;
  readonly places: number;
  readonly sinceMs: number;
}

/** `state`: the slot is in another state, or the model that comes next. `load`: only its counts are. */
export type SlotChange = "state" | "load";

/** An engine that answers, for whoever measures it. */
export interface AwakeEngine {
  readonly slot: SlotName;
  readonly spec: EngineSpec;
  readonly endpoint: EngineEndpoint;
}

/** What a view shows of which the slot's state does not know. */
export interface Surroundings {
  readonly name: SlotName;
  /** Oldest first. */
  readonly running: readonly Running[];
  readonly sleepers: readonly Sleeper[];
  /** Of the switch in progress. */
  readonly phase?: SwitchPhase;
}

export function viewOf(slot: Slot, { name, running, sleepers, phase }: Surroundings, nowMs: number): SlotView {
  const { state } = slot;
  const engine = awakeEngine(state);
  const kind = kindOf(state, nowMs);
  const active = activeOf(state);
  const next = nextOf(slot);
  const oldest = running[0];
  return {
    name,
    models: [...slot.maxConcurrent.keys()],
    kind,
    ...(active ? { active } : {}),
    ...(next ? { next } : {}),
    running: slot.taken,
    runningByRouter: sum(running, ({ routerId, places }) => [routerId, places]),
    waiting: slot.waiters.reduce((total, { answers }) => total + answers, 0),
    waitingByModel: sum(slot.waiters, ({ model, answers }) => [model, answers]),
    ...(oldest ? { oldestRunningMs: nowMs - oldest.sinceMs } : {}),
    ...(state.kind === "draining" && kind === "draining-open" ? { closesInMs: state.closesAtMs - nowMs } : {}),
    stateAgeMs: nowMs - (kind === "draining-closed" ? closedSinceMs(slot) : slot.stateSinceMs),
    ...("beganMs" in state ? { switching: switchingOf(slot, nowMs - state.beganMs, phase) } : {}),
    ...(engine ? { maxConcurrent: placesOf(slot, engine) } : {}),
    ...("retryAtMs" in state ? { retryInMs: Math.max(0, state.retryAtMs - nowMs) } : {}),
    sleepers,
  };
}

export function activeOf(state: SlotState): ModelId | undefined {
  return "model" in state ? state.model : awakeEngine(state)?.model;
}

export function kindOf(state: SlotState, nowMs: number): SlotKind {
  switch (state.kind) {
    case "adopting":
      return "starting";
    case "starting":
      return state.givenUp ? "stopping" : "starting";
    case "draining":
      return nowMs < state.closesAtMs ? "draining-open" : "draining-closed";
    case "stuck":
      return "failed";
    case "empty":
    case "active":
    case "stopping":
    case "failed":
      return state.kind;
    default:
      return unreachable(state);
  }
}

/** The model that comes after the one that is there. */
export function nextOf({ state, waiters, wish }: Slot): ModelId | undefined {
  if (state.kind === "draining") return state.next;
  if (state.kind === "stopping") return waiters[0]?.model ?? (state.restart ? state.model : wish);
  return undefined;
}

function switchingOf(slot: Slot, ageMs: number, phase?: SwitchPhase): NonNullable<SlotView["switching"]> {
  const model = slot.state.kind === "starting" ? slot.state.model : nextOf(slot);
  const usualMs = model && slot.switchMs.get(model);
  return { ageMs, ...(phase ? { phase } : {}), ...(usualMs === undefined ? {} : { usualMs }) };
}

/** A drain may have begun after the time at which it would have closed. */
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
