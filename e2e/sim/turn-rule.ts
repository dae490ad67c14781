/**
 * Judges turns. One is over ten seconds after the later of the first waiter for another model and the start of its engine.
 * The next model waits for that, the longest answer, the switch, and what waited before it for the same engine.
 */
import type { ApiError } from "@weiche/shared/errors.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import type { SimRequest } from "./sim-request.ts";

interface Moment {
  readonly nowMs: number;
  /** Time that was spent on switches so far. */
  readonly switchingMs: number;
}

/** The fastest wake and stop of the simulated engines. */
const shortestSwitchMs = 150;

export class TurnRule {
  readonly #limits: SlotLimits;
  readonly #longestRunMs: number;
  /** Since when a request for another model has waited through the turn of the active one; undefined: none waits. */
  #sinceMs: number | undefined;

  constructor(limits: SlotLimits, longestRunMs: number) {
    this.#limits = limits;
    this.#longestRunMs = longestRunMs;
  }

  /** Another engine is active, or none. */
  begin(): void {
    this.#sinceMs = undefined;
  }

  /** `other`: the oldest request for another model. */
  follow(other: SimRequest | undefined, serving: { readonly sinceMs: number } | undefined): void {
    this.#sinceMs = other && (this.#sinceMs ?? Math.max(other.sinceMs, serving!.sinceMs));
  }

  isOver(nowMs: number): boolean {
    return this.#sinceMs !== undefined && nowMs >= this.#sinceMs + this.#limits.drainOpenMsMax;
  }

  /** Whether the refusal says, in a time that clients obey, that the next turn comes too late, or the slot only refuses. */
  isTooLate({ leftMs = Infinity }: SimRequest, { message, retryAfterSeconds }: ApiError): boolean {
    const { whileSwitching, waiterMsMax } = this.#limits;
    const turnMs = 1_000 * Number(/expected in (\d+) s\.$/.exec(message)?.[1]);
    return retryAfterSeconds! <= 59 && (whileSwitching === "refuse" || turnMs > Math.min(waiterMsMax, leftMs));
  }

  /** Whether the request has less time left than any two switches take, so that no turn of its model can come in time. */
  isHopeless({ leftMs = Infinity, tooLate = false }: Pick<SimRequest, "leftMs" | "tooLate">): boolean {
    return tooLate && leftMs < 2 * shortestSwitchMs;
  }

  /** From now on the request waits for one turn of `behind`: its model is the next one. A restart is a turn anew. */
  bind(request: SimRequest, behind: SimRequest["model"], { nowMs, switchingMs }: Moment): void {
    if (request.bound && request.bound.behind !== behind) return;
    request.bound = { behind, sinceMs: nowMs, switchingMsBefore: switchingMs };
    request.aheadMs = undefined;
  }

  /** A request no longer waits, which those that came after it had to wait for. */
  gone({ order }: SimRequest, waiting: Iterable<SimRequest>, nowMs: number): void {
    for (const other of waiting) if (other.bound && other.order > order) other.aheadMs = nowMs - other.bound.sinceMs;
  }

  /** Whether the request's model has its turn in time. */
  isInTime(request: SimRequest, { nowMs, switchingMs }: Moment): boolean {
    const { bound, aheadMs = 0 } = request;
    if (!bound) return true;
    request.bound = undefined;
    const boundMs = Math.max(this.#limits.drainOpenMsMax, aheadMs) + this.#longestRunMs;
    return nowMs - bound.sinceMs - (switchingMs - bound.switchingMsBefore) <= boundMs;
  }
}
