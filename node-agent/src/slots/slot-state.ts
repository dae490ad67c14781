/**
 * State, events and effects of a slot, as plain data. All times are monotonic milliseconds: a jump of the wall clock
 * changes nothing.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import type { SlotConfig, SlotLimits } from "../config/config.ts";
import type { EngineEndpoint, FoundEngine } from "../engines/engine.ts";
import type { FairShares, TokensUsed } from "./fair-shares.ts";
import type { HeldTimes } from "./held-times.ts";

/** Identifies one call of `admit`. Not the request id: a request that is tried again must count twice. */
export type Ticket = number;

export interface Waiter {
  readonly ticket: Ticket;
  readonly model: ModelId;
  readonly account: AccountId;
  /** At least 1. Each answer needs a place of its own; all of them begin together. */
  readonly answers: number;
  readonly sinceMs: number;
}

/** Places of the awake engine that one request holds. */
export interface Holding {
  readonly account: AccountId;
  readonly places: number;
  /** What the request will probably cost. */
  readonly cost: number;
  readonly sinceMs: number;
}

/** A waiter that was overtaken, and by how many places in total. */
export interface Overtaken {
  readonly ticket: Ticket;
  readonly places: number;
}

/** An engine that is awake and proven. */
export interface Awake {
  readonly model: ModelId;
  /** Number of the operation that brought it here. */
  readonly epoch: number;
  readonly endpoint: EngineEndpoint;
  readonly sinceMs: number;
  /** When requests found it silent, failing, or that nothing listens; from then on it takes nothing new. */
  readonly suspectedAtMs?: number;
}

export type SlotState =
  /** It is not known yet which engines an earlier agent left; requests wait. */
  | { readonly kind: "adopting"; readonly epoch: number; readonly deadlineMs: number; readonly attempt: number }
  | { readonly kind: "empty" }
  | {
      readonly kind: "starting";
      readonly model: ModelId;
      readonly epoch: number;
      /** When the switch began, including the stop before it; of an adopted engine, when an earlier agent started it. */
      readonly beganMs: number;
      /** An earlier agent started it: when it was ready may not have been seen. */
      readonly adopted: boolean;
      readonly deadlineMs: number;
      /** It was told to stop trying, and cleans up. */
      readonly givenUp: boolean;
      readonly restart: boolean;
    }
  | { readonly kind: "active"; readonly engine: Awake }
  /** Open until `closesAtMs`, then closed. `next` is what comes afterwards. */
  | { readonly kind: "draining"; readonly engine: Awake; readonly next: ModelId; readonly closesAtMs: number }
  | {
      readonly kind: "stopping";
      readonly model: ModelId;
      readonly epoch: number;
      readonly beganMs: number;
      readonly deadlineMs: number;
      readonly attempt: number;
      readonly restart: boolean;
    }
  /** Empty, and `model` rests until `retryAtMs`. With `restart` it is then started again, unless another was asked for. */
  | { readonly kind: "failed"; readonly model: ModelId; readonly retryAtMs: number; readonly restart: boolean }
  /** An engine may be awake although it was told to stop (`model`), or it is not known which one is (no `model`). */
  | {
      readonly kind: "stuck";
      readonly model?: ModelId;
      readonly retryAtMs: number;
      readonly attempt: number;
      readonly restart: boolean;
    };

interface Backoff {
  readonly failures: number;
  readonly untilMs: number;
}

export interface Slot {
  readonly limits: SlotLimits;
  /** Most answers that each model's engine is asked for at once. */
  readonly maxConcurrent: ReadonlyMap<ModelId, number>;
  readonly state: SlotState;
  readonly stateSinceMs: number;
  /** Number of operations so far. News with another number than the current one changes nothing. */
  readonly epoch: number;
  /** Places of the awake engine that requests hold. */
  readonly taken: number;
  /** What holds them, in the order of admission. */
  readonly running: readonly Holding[];
  /** In order of arrival; who gets a place next is decided by `slot-places.ts`. */
  readonly waiters: readonly Waiter[];
  readonly backoff: ReadonlyMap<ModelId, Backoff>;
  /** Moving average of the time from the stop of the old engine to the proof of each model's; without the drain before. */
  readonly switchMs: ReadonlyMap<ModelId, number>;
  /** How long requests of each model held their places. */
  readonly held: ReadonlyMap<ModelId, HeldTimes>;
  /** Moving average of how long a turn of each model lasted while another one was waited for. */
  readonly turnMs: ReadonlyMap<ModelId, number>;
  /** When the client of each model that was refused last was told to come back. */
  readonly toldMs: ReadonlyMap<ModelId, number>;
  /** What each account has used of each model's engine. */
  readonly shares: ReadonlyMap<ModelId, FairShares>;
  readonly overtaken?: Overtaken;
  /** Until when places are kept free though a request waits: for accounts that hold none. */
  readonly reserveUntilMs?: number;
  readonly maintenance: boolean;
  /** A model to activate once, when nobody is in its way. */
  readonly prewarm?: ModelId;
}

export type SlotEvent =
  | {
      readonly kind: "request";
      readonly ticket: Ticket;
      readonly model: ModelId;
      readonly account: AccountId;
      readonly answers: number;
      /** Time left for its whole answer. Absent: not bounded. */
      readonly leftMs?: number;
    }
  /** The client of a waiter has left. */
  | { readonly kind: "left"; readonly ticket: Ticket }
  /** A request gives back its places on the engine of this epoch. Once for each admission. `used`: absent if unknown. */
  | { readonly kind: "released"; readonly epoch: number; readonly holding: Holding; readonly used?: TokensUsed }
  | { readonly kind: "suspected"; readonly epoch: number }
  | { readonly kind: "readopt" }
  | { readonly kind: "adopted"; readonly epoch: number; readonly found?: FoundEngine }
  | { readonly kind: "adoptFailed"; readonly epoch: number }
  | { readonly kind: "started"; readonly epoch: number; readonly endpoint: EngineEndpoint }
  | { readonly kind: "startFailed"; readonly epoch: number }
  | { readonly kind: "stopped"; readonly epoch: number }
  | { readonly kind: "stopFailed"; readonly epoch: number }
  | { readonly kind: "exited"; readonly model: ModelId }
  | { readonly kind: "maintenance"; readonly on: boolean }
  | { readonly kind: "prewarm"; readonly model: ModelId }
  /** Time has passed. Too early or too often does no harm. */
  | { readonly kind: "tick" };

export type RefusalKind = "model_switching" | "model_unavailable" | "overloaded" | "maintenance";

export type SlotEffect =
  | { readonly kind: "admit"; readonly ticket: Ticket; readonly engine: Awake; readonly holding: Holding }
  | {
      readonly kind: "refuse";
      readonly ticket: Ticket;
      readonly refusal: RefusalKind;
      readonly retryAfterMs: number;
      /** Estimated time until the model's next turn, if that is the reason. */
      readonly turnMs?: number;
    }
  | { readonly kind: "reject"; readonly ticket: Ticket; readonly answersMax: number }
  | { readonly kind: "adopt"; readonly epoch: number }
  | { readonly kind: "start"; readonly model: ModelId; readonly epoch: number }
  | { readonly kind: "giveUp" }
  /** `forGood`: sleep is not enough. */
  | { readonly kind: "stop"; readonly model: ModelId; readonly epoch: number; readonly forGood: boolean }
  /** The requests on this engine must be told. */
  | { readonly kind: "engineLost" };

/** Creates a slot of unknown state: requests wait until `readopt` is answered. */
export function createSlot(config: SlotConfig, nowMs: number): Slot {
  return {
    limits: config.limits,
    maxConcurrent: new Map(config.engines.map((engine) => [engine.model, engine.maxConcurrent])),
    state: { kind: "adopting", epoch: 0, deadlineMs: Infinity, attempt: 0 },
    stateSinceMs: nowMs,
    epoch: 0,
    taken: 0,
    running: [],
    waiters: [],
    backoff: new Map(),
    switchMs: new Map(),
    held: new Map(),
    turnMs: new Map(),
    toldMs: new Map(),
    shares: new Map(),
    maintenance: false,
  };
}

export function awakeEngine(state: SlotState): Awake | undefined {
  return state.kind === "active" || state.kind === "draining" ? state.engine : undefined;
}

/** Most answers that the engine is asked for at once: as configured, and no more than it says it runs. */
export function placesOf({ maxConcurrent }: Slot, { model, endpoint }: Awake): number {
  return Math.min(maxConcurrent.get(model)!, endpoint.parallelMax ?? Infinity);
}

export function currentEpoch(state: SlotState): number | undefined {
  return "epoch" in state ? state.epoch : awakeEngine(state)?.epoch;
}

/** Time of the next `tick`: the earliest time at which something changes by itself. */
export function wakeAtMs(slot: Slot, nowMs: number): number | undefined {
  const { state, limits } = slot;
  const engine = awakeEngine(state);
  const idle = engine && slot.taken === 0 && (slot.prewarm !== undefined || state.kind === "draining");
  const deadlines = [
    slot.waiters[0] && slot.waiters[0].sinceMs + limits.waiterMsMax,
    "deadlineMs" in state ? state.deadlineMs : undefined,
    state.kind === "stuck" ? state.retryAtMs : undefined,
  ];
  // A time that has passed was acted upon, or waits for an event.
  const turns = [
    state.kind === "draining" ? state.closesAtMs : undefined,
    state.kind === "failed" ? state.retryAtMs : undefined,
    idle ? engine.sinceMs + limits.minResidencyMs : undefined,
    slot.prewarm && slot.backoff.get(slot.prewarm)?.untilMs,
    engine && slot.reserveUntilMs,
  ];
  const ahead = [...deadlines, ...turns.filter((time) => time !== undefined && time > nowMs)];
  const earliest = Math.min(...ahead.filter((time) => time !== undefined));
  return earliest === Infinity ? undefined : Math.max(earliest, nowMs);
}
