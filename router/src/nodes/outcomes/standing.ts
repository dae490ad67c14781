/**
 * What this router remembers of how requests for one model ended in one slot. Times are monotonic milliseconds. No I/O.
 *
 * The newest outcome weighs a quarter and all earlier ones the rest, so that three failures in a row are trouble. An
 * account has one vote, its last outcome. While others are served, requests of one account that make an engine fail are
 * therefore no trouble. A slot in trouble is tried with single requests, each after the first byte of the one before, until
 * three to five in a row are served.
 */
import type { AccountId } from "@weiche/shared/ids.ts";

/** `slow`: served, but the first byte took far longer than in other slots. `untold`: says nothing about the slot. */
export type Outcome = "served" | "slow" | "failed" | "untold";

export interface Trouble {
  readonly kind: "failing" | "slow";
  /** Share of bad outcomes, 0 to 1, in which the newest ones weigh most. */
  readonly share: number;
  readonly sinceMs: number;
  /** When a request may try the slot. Infinite while one does that has no first byte yet. */
  readonly tryAtMs: number;
  /** Of the newest outcome. */
  readonly changedAtMs: number;
}

/** The share of bad outcomes, which fades while none comes. */
export function shareAt({ share, changedAtMs }: Trouble, nowMs: number): number {
  return share * 2 ** ((changedAtMs - nowMs) / halfLifeMs);
}

/** An attempt that runs. */
interface Begun {
  readonly atMs: number;
  /** It tries a slot in trouble. */
  readonly isTrial: boolean;
}

const newestWeight = 1 / 4;
const troubleShare = 1 / 2;
/** Lower, so that a slot which fails every second request is not used again by luck. */
const trustedShare = 1 / 4;
/** After this time without an outcome a bad share is half of what it was. */
const halfLifeMs = 300_000;
const votersMax = 8;
const voteHalfLifeMs = 30_000;
export const pauseMsMin = 2_000;
export const pauseMsMax = 30_000;
/** Trials at a time: each one's first byte lets the next begin, because whole answers may take minutes. */
const trialsMax = 4;
/** Trouble that returns within this time keeps the pause to which it had grown. */
const relapseMs = 300_000;

export class Standing {
  #failed = 0;
  #slow = 0;
  #changedAtMs = 0;
  /** In the order of their last outcomes. */
  readonly #votes = new Map<AccountId, { readonly isBad: boolean; readonly atMs: number }>();
  #sinceMs: number | undefined;
  #tryAtMs = Infinity;
  /** Trials that run. */
  #trials = 0;
  #pauseMs = pauseMsMin;
  #leftAtMs = -Infinity;

  /** Undefined: it is used like every other slot. */
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

  /** The first byte of the answer came. */
  answered({ atMs, isTrial }: Begun, nowMs: number): void {
    const isWaitedFor = isTrial && this.#sinceMs !== undefined && atMs >= this.#sinceMs && this.#tryAtMs === Infinity;
    if (isWaitedFor && this.#trials < trialsMax) this.#tryAtMs = nowMs;
  }

  ended({ atMs, isTrial }: Begun, outcome: Outcome, account: AccountId, nowMs: number): void {
    const sinceMs = this.#sinceMs;
    if (isTrial) this.#trials--;
    // What began before the trouble says nothing about its end.
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

  /** Whether more accounts met a bad outcome last than a good one; old votes count less. */
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
