/**
 * Checks turns. A turn ends ten seconds after the later of two events: the first waiter for another model, and the
 * start of the turn's engine. The next model waits for this time, the longest answer, the switch, and earlier waiters
 * for the same engine.
 */
import type { ApiError } from "@weiche/shared/errors.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import type { SimRequest } from "./sim-request.ts";

interface Moment {
  readonly nowMs: number;
  /** Total time of switches so far. */
  readonly switchingMs: number;
}

/** The shortest wake and stop of the simulated engines. */
const shortestSwitchMs = 150;

export class TurnRule {
  readonly #limits: SlotLimits;
  readonly #longestRunMs: number;
  /** Time since when a request for another model waits during the active model's turn. Undefined if none waits. */
  #sinceMs: number | undefined;

  constructor(limits: SlotLimits, longestRunMs: number) {
    this.#limits = limits;
    this.#longestRunMs = longestRunMs;
  }

  /** Call when another engine becomes active, or none. */
  begin(): void {
    this.#sinceMs = undefined;
  }

  /** `other` is the oldest request for another model. */
  follow(other: SimRequest | undefined, serving: { readonly sinceMs: number } | undefined): void {
    this.#sinceMs = other && (this.#sinceMs ?? Math.max(other.sinceMs, serving!.sinceMs));
  }

  isOver(nowMs: number): boolean {
    return this.#sinceMs !== undefined && nowMs >= this.#sinceMs + this.#limits.drainOpenMsMax;
  }

  /**
   * Returns whether the refusal is right because the next turn comes too late or the slot only refuses, and gives a
   * time that clients obey.
   */
  isTooLate({ leftMs = Infinity }: SimRequest, { message, retryAfterSeconds }: ApiError): boolean {
    const { whileSwitching, waiterMsMax } = this.#limits;
    const turnMs = 1_000 * Number(/expected in (\d+) s\.$/.exec(message)?.[1]);
    return retryAfterSeconds! <= 59 && (whileSwitching === "refuse" || turnMs > Math.min(waiterMsMax, leftMs));
  }

  /**
   * Returns whether the request has less time left than any two switches take, so that its model's turn cannot come in
   * time.
   */
  isHopeless({ leftMs = Infinity, tooLate = false }: Pick<SimRequest, "leftMs" | "tooLate">): boolean {
    return tooLate && leftMs < 2 * shortestSwitchMs;
  }

  /** The request waits for one turn of `behind`, because its model is next. A restart begins a new turn. */
  bind(request: SimRequest, behind: SimRequest["model"], { nowMs, switchingMs }: Moment): void {
    if (request.bound && request.bound.behind !== behind) return;
    request.bound = { behind, sinceMs: nowMs, switchingMsBefore: switchingMs };
    request.aheadMs = undefined;
  }

  /** Call when a request no longer waits. Later requests had to wait for it. */
  gone({ order }: SimRequest, waiting: Iterable<SimRequest>, nowMs: number): void {
    for (const other of waiting) if (other.bound && other.order > order) other.aheadMs = nowMs - other.bound.sinceMs;
  }

  /** Returns whether the request's model gets its turn in time. */
  isInTime(request: SimRequest, { nowMs, switchingMs }: Moment): boolean {
    const { bound, aheadMs = 0 } = request;
    if (!bound) return true;
    request.bound = undefined;
    const boundMs = Math.max(this.#limits.drainOpenMsMax, aheadMs) + this.#longestRunMs;
    return nowMs - bound.sinceMs - (switchingMs - bound.switchingMsBefore) <= boundMs;
  }
}
