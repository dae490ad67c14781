/**
 * The state, events and effects of a slot, as plain data. All times are monotonic milliseconds, so that changes of the
 * wall clock have no effect.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import type { SlotConfig, SlotLimits } from "../config/config.ts";
import type { EngineEndpoint, FoundEngine } from "../engines/engine.ts";
import type { FairShares, TokensUsed } from "./fair-shares.ts";
import type { HeldTimes } from "./held-times.ts";

/** Identifies one call of `admit`. It differs from the request id, because a retried request counts twice. */
export type Ticket = number;

export interface Waiter {
  readonly ticket: Ticket;
  readonly model: ModelId;
  readonly account: AccountId;
  /** At least 1. Each answer needs its own place, and all of them begin together. */
  readonly answers: number;
  readonly sinceMs: number;
}

/** Places of the awake engine that one request holds. */
export interface Holding {
  readonly account: AccountId;
  readonly places: number;
  /** The estimated cost of the request. */
  readonly cost: number;
  readonly sinceMs: number;
}

/** A waiter that was overtaken, and the total of places that overtook it. */
export interface Overtaken {
  readonly ticket: Ticket;
  readonly places: number;
}

/** An engine that is awake and has answered its probe. */
export interface Awake {
  readonly model: ModelId;
  /** The number of the operation that started or found it. */
  readonly epoch: number;
  readonly endpoint: EngineEndpoint;
  readonly sinceMs: number;
  /** When requests found it silent, failing or not listening. It admits no requests from then on. */
  readonly suspectedAtMs?: number;
}

export type SlotState =
  /** The engines of an earlier agent are not known yet. Requests wait. */
  | { readonly kind: "adopting"; readonly epoch: number; readonly deadlineMs: number; readonly attempt: number }
  | { readonly kind: "empty" }
  | {
      readonly kind: "starting";
      readonly model: ModelId;
      readonly epoch: number;
      /**
       * When the switch began, including the stop of the old engine. For an adopted engine: when the earlier agent
       * started it.
       */
      readonly beganMs: number;
      /** An earlier agent started it, so the time when it became ready may be unknown. */
      readonly adopted: boolean;
      readonly deadlineMs: number;
      /** The start was ended and is cleaning up. */
      readonly givenUp: boolean;
      readonly restart: boolean;
    }
  | { readonly kind: "active"; readonly engine: Awake }
  /** Open until `closesAtMs`, then closed. `next` is the model that comes afterwards. */
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
  /**
   * No engine. `model` has a backoff until `retryAtMs`. If `restart` is set, it is then started again, unless another
   * model is requested.
   */
  | { readonly kind: "failed"; readonly model: ModelId; readonly retryAtMs: number; readonly restart: boolean }
  /** An engine may be awake although it was stopped (`model`), or it is unknown which one is awake (no `model`). */
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
  /** How long the engine has run since, in turns that have ended. */
  readonly ranMs: number;
}

export interface Slot {
  readonly limits: SlotLimits;
  /** The most answers that each model's engine is asked for at once. */
  readonly maxConcurrent: ReadonlyMap<ModelId, number>;
  readonly state: SlotState;
  readonly stateSinceMs: number;
  /** The number of operations so far. Events of another operation are ignored. */
  readonly epoch: number;
  /** The places of the awake engine that requests hold. */
  readonly taken: number;
  /** The requests that hold them, in the order of admission. */
  readonly running: readonly Holding[];
  /** In order of arrival. `slot-places.ts` decides which one gets a place next. */
  readonly waiters: readonly Waiter[];
  readonly backoff: ReadonlyMap<ModelId, Backoff>;
  /**
   * Moving average of each model's switch: from the stop of the old engine to the probe of the new one, without the
   * drain.
   */
  readonly switchMs: ReadonlyMap<ModelId, number>;
  /** How long requests of each model held their places. */
  readonly held: ReadonlyMap<ModelId, HeldTimes>;
  /** Moving average of how long each model stayed active while another one was waited for. */
  readonly turnMs: ReadonlyMap<ModelId, number>;
  /** For each model, the latest time that a refused client got in `retry-after`. */
  readonly toldMs: ReadonlyMap<ModelId, number>;
  /** What each account has used of each model's engine. */
  readonly shares: ReadonlyMap<ModelId, FairShares>;
  readonly overtaken?: Overtaken;
  /** Until when places stay in reserve for accounts that hold none, although a request waits. */
  readonly reserveUntilMs?: number;
  readonly maintenance: boolean;
  /** A model to start once, when no request is in the way. */
  readonly prewarm?: ModelId;
}

export type SlotEvent =
  | {
      readonly kind: "request";
      readonly ticket: Ticket;
      readonly model: ModelId;
      readonly account: AccountId;
      readonly answers: number;
      /** The time left for the whole answer. If undefined, the time is unbounded. */
      readonly leftMs?: number;
    }
  /** The client of a waiter has left. */
  | { readonly kind: "left"; readonly ticket: Ticket }
  /** A request gives back its places on the engine of this epoch, once per admission. `used`: undefined if unknown. */
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
  /** Time has passed. Extra ticks do no harm. */
  | { readonly kind: "tick" };

export type RefusalKind = "model_switching" | "model_unavailable" | "overloaded" | "maintenance";

export type SlotEffect =
  | { readonly kind: "admit"; readonly ticket: Ticket; readonly engine: Awake; readonly holding: Holding }
  | {
      readonly kind: "refuse";
      readonly ticket: Ticket;
      readonly refusal: RefusalKind;
      readonly retryAfterMs: number;
      /** Estimated time until the model's next turn, if the request is refused because of it. */
      readonly turnMs?: number;
    }
  | { readonly kind: "reject"; readonly ticket: Ticket; readonly answersMax: number }
  | { readonly kind: "adopt"; readonly epoch: number }
  | { readonly kind: "start"; readonly model: ModelId; readonly epoch: number }
  | { readonly kind: "giveUp" }
  /** `forGood`: the engine must end; sleep is not enough. */
  | { readonly kind: "stop"; readonly model: ModelId; readonly epoch: number; readonly forGood: boolean }
  /** The requests on this engine must be notified. */
  | { readonly kind: "engineLost" };

/** Creates a slot of unknown state. Requests wait until the search for earlier engines has ended. */
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

/** Returns whether a drain has closed. Then new requests for the slot's model wait for its next turn, or are refused. */
export function isDrainClosed(state: SlotState, nowMs: number): boolean {
  return state.kind === "draining" && nowMs >= state.closesAtMs;
}

export function awakeEngine(state: SlotState): Awake | undefined {
  return state.kind === "active" || state.kind === "draining" ? state.engine : undefined;
}

/**
 * Returns the most answers that the engine is asked for at once: the configured number, but at most what the engine
 * reports.
 */
export function placesOf({ maxConcurrent }: Slot, { model, endpoint }: Awake): number {
  return Math.min(maxConcurrent.get(model)!, endpoint.parallelMax ?? Infinity);
}

export function currentEpoch(state: SlotState): number | undefined {
  return "epoch" in state ? state.epoch : awakeEngine(state)?.epoch;
}

/** Returns the time of the next `tick`: the earliest time at which the state changes without an event. */
export function wakeAtMs(slot: Slot, nowMs: number): number | undefined {
  const { state, limits } = slot;
  const engine = awakeEngine(state);
  const idle = engine && slot.taken === 0 && (slot.prewarm !== undefined || state.kind === "draining");
  const deadlines = [
    slot.waiters[0] && slot.waiters[0].sinceMs + limits.waiterMsMax,
    "deadlineMs" in state ? state.deadlineMs : undefined,
    state.kind === "stuck" ? state.retryAtMs : undefined,
  ];
  // Past times were handled already or wait for an event.
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
