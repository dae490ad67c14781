/**
 * How requests for one model ended in one slot, as this router remembers it. Times are monotonic milliseconds. No I/O.
 *
 * The newest outcome weighs a quarter and all earlier outcomes the rest, so that three failures in a row are trouble.
 * Each account has one vote: its last outcome. Requests of one account that make an engine fail are therefore no
 * trouble while other accounts are served.
 *
 * A slot in trouble gets single requests as trials. Each trial starts after the first byte of the previous one. After
 * three to five served trials in a row the trouble ends.
 */
import type { AccountId } from "@weiche/shared/ids.ts";

/**
 * `slow`: served, but the first byte took far longer than in other slots. `untold`: the outcome does not describe the
 * slot.
 */
export type Outcome = "served" | "slow" | "failed" | "untold";

export interface Trouble {
  readonly kind: "failing" | "slow";
  /** Share of bad outcomes, 0 to 1. The newest outcomes weigh most. */
  readonly share: number;
  readonly sinceMs: number;
  /** Time from which a request may try the slot. Infinite while a trial has no first byte yet. */
  readonly tryAtMs: number;
  /** Time of the newest outcome. */
  readonly changedAtMs: number;
}

/** Returns the share of bad outcomes, which decays while there is no new outcome. */
export function shareAt({ share, changedAtMs }: Trouble, nowMs: number): number {
  return share * 2 ** ((changedAtMs - nowMs) / halfLifeMs);
}

/** A running attempt. */
interface Begun {
  readonly atMs: number;
  /** Whether the attempt tries a slot in trouble. */
  readonly isTrial: boolean;
}

const newestWeight = 1 / 4;
const troubleShare = 1 / 2;
/** Lower than `troubleShare`, so that a slot which fails every second request is not used again by chance. */
const trustedShare = 1 / 4;
/** Without new outcomes, a bad share halves in this time. */
const halfLifeMs = 300_000;
const votersMax = 8;
const voteHalfLifeMs = 30_000;
export const pauseMsMin = 2_000;
export const pauseMsMax = 30_000;
/** Concurrent trials. The first byte of one lets the next begin, because whole answers may take minutes. */
const trialsMax = 4;
/** Trouble that returns within this time keeps the length of its last pause. */
const relapseMs = 300_000;

export class Standing {
  #failed = 0;
  #slow = 0;
  #changedAtMs = 0;
  /** In the order of their last outcomes. */
  readonly #votes = new Map<AccountId, { readonly isBad: boolean; readonly atMs: number }>();
  #sinceMs: number | undefined;
  #tryAtMs = Infinity;
  /** Number of running trials. */
  #trials = 0;
  #pauseMs = pauseMsMin;
  #leftAtMs = -Infinity;

  /** Undefined if the slot is used normally. */
  get trouble(): Trouble | undefined {
    if (this.#sinceMs === undefined) return undefined;
    const kind = this.#failed >= this.#slow ? "failing" : "slow";
    const share = this.#failed + this.#slow;
    return { kind, share, sinceMs: this.#sinceMs, tryAtMs: this.#tryAtMs, changedAtMs: this.#changedAtMs };
  }

  began(nowMs: number): Begun {
    const isTrial = this.#sinceMs !== undefined && nowMs >= this.#tryAtMs;
    if (isTrial) {
      this.#tryAtMs = Infinity;
      this.#trials++;
    }
    return { atMs: nowMs, isTrial };
  }

  /** Call when the first byte of the answer comes. */
  answered({ atMs, isTrial }: Begun, nowMs: number): void {
    const isWaitedFor = isTrial && this.#sinceMs !== undefined && atMs >= this.#sinceMs && this.#tryAtMs === Infinity;
    if (isWaitedFor && this.#trials < trialsMax) this.#tryAtMs = nowMs;
  }

  ended({ atMs, isTrial }: Begun, outcome: Outcome, account: AccountId, nowMs: number): void {
    const sinceMs = this.#sinceMs;
    if (isTrial) this.#trials--;
    // An attempt from before the trouble does not show whether the trouble has ended.
    if (sinceMs !== undefined && atMs < sinceMs) return;
    if (outcome === "untold") {
      if (isTrial) this.#tryAtMs = nowMs + pauseMsMin;
      return;
    }
    this.#take(outcome, account, nowMs);
    const share = this.#failed + this.#slow;
    if (sinceMs === undefined) {
      if (share >= troubleShare && this.#isOfMost(nowMs)) this.#enter(nowMs);
    } else if (share < trustedShare) this.#leave(nowMs);
    else if (isTrial) this.#tryAgain(outcome, nowMs);
  }

  #take(outcome: Outcome, account: AccountId, nowMs: number): void {
    const kept = (1 - newestWeight) * 2 ** ((this.#changedAtMs - nowMs) / halfLifeMs);
    this.#failed = this.#failed * kept + (outcome === "failed" ? newestWeight : 0);
    this.#slow = this.#slow * kept + (outcome === "slow" ? newestWeight : 0);
    this.#changedAtMs = nowMs;
    this.#votes.delete(account);
    this.#votes.set(account, { isBad: outcome !== "served", atMs: nowMs });
    if (this.#votes.size > votersMax) this.#votes.delete(this.#votes.keys().next().value!);
  }

  /** Returns whether more accounts had a bad last outcome than a good one. Old votes count less. */
  #isOfMost(nowMs: number): boolean {
    let sum = 0;
    for (const { isBad, atMs } of this.#votes.values())
      sum += (isBad ? 1 : -1) * 2 ** ((atMs - nowMs) / voteHalfLifeMs);
    return sum > 0;
  }

  #enter(nowMs: number): void {
    this.#sinceMs = nowMs;
    if (nowMs - this.#leftAtMs > relapseMs) this.#pauseMs = pauseMsMin;
    this.#tryAtMs = nowMs + this.#pauseMs;
  }

  #leave(nowMs: number): void {
    this.#sinceMs = undefined;
    this.#leftAtMs = nowMs;
  }

  #tryAgain(outcome: Outcome, nowMs: number): void {
    if (outcome === "served") return void (this.#tryAtMs = nowMs);
    this.#pauseMs = Math.min(pauseMsMax, 2 * this.#pauseMs);
    this.#tryAtMs = nowMs + this.#pauseMs;
  }
}
