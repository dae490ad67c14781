/**
 * When a refused request would be admitted, given those who were told a time before: the k-th is told the k-th free
 * time. A told time reserves nothing, since a limit refuses only what exceeds it. The limit store computes the same with
 * `tellScript`.
 */
import type { AccountLimits } from "./limiter.ts";

export const windowMs = 60_000;
/** Official clients try again by themselves after at most this time. */
export const toldMsMax = 60_000;
/** So many are remembered per account. Later ones are told a time that is not kept. */
export const toldMax = 256;
/** Whoever has not come back so long after its time is forgotten. */
export const lateMsMax = 2_000;
/** The expected time of a young answer where nothing is known of others. */
export const youngMs = 750;
/** An answer whose like is not known goes on for so many times its age: nine of ten with a heavy tail end before. */
export const restFactor = 9;
/** Of known answers so many end before the time that is told. */
export const endedShare = 0.9;
/** Fewer known answers say nothing. */
export const durationsMin = 3;
const durationsMax = 32;

export interface Occupied {
  /** When the requests of the last minute were admitted. */
  readonly admittedAtMs: readonly number[];
  /** When the running ones were admitted. */
  readonly begunAtMs: readonly number[];
  /** Times that others were told. */
  readonly toldAtMs: readonly number[];
  /** Durations of earlier requests, in ascending order. */
  readonly durationsMs: readonly number[];
}

/** Returns for how many whole seconds a refused request has to wait, or undefined if that is longer than `toldMsMax`. */
export function secondsToWait(occupied: Occupied, limits: AccountLimits, nowMs: number): number | undefined {
  const { admittedAtMs, begunAtMs, toldAtMs, durationsMs } = occupied;
  const minuteEndsMs = [...admittedAtMs, ...toldAtMs].map((atMs) => atMs - nowMs + windowMs);
  const running = begunAtMs.map((atMs) => restMs(nowMs - atMs, durationsMs));
  const returning = toldAtMs.map((atMs) => atMs - nowMs + restMs(0, durationsMs));
  const waitMs = Math.max(freeIn(minuteEndsMs, limits.perMinute), freeIn([...running, ...returning], limits.parallel));
  return waitMs > toldMsMax ? undefined : Math.max(1, Math.ceil(waitMs / 1_000));
}

/** When fewer than `limit` of them have not ended. */
function freeIn(endsMs: readonly number[], limit: number): number {
  return limit < 1 ? Infinity : (endsMs.toSorted((a, b) => b - a)[limit - 1] ?? 0);
}

/** For how long an answer of this age probably goes on. */
function restMs(ageMs: number, durationsMs: readonly number[]): number {
  const longer = durationsMs.filter((duration) => duration > ageMs);
  if (longer.length < durationsMin) return restFactor * Math.max(ageMs, youngMs);
  return longer[Math.ceil(longer.length * endedShare) - 1]! - ageMs;
}

/** The durations of the last requests. */
export class Durations {
  readonly #lastMs: number[] = [];
  #next = 0;

  note(durationMs: number): void {
    this.#lastMs[this.#next++ % durationsMax] = durationMs;
  }

  /** In ascending order; undefined where too few are known. */
  get knownMs(): readonly number[] | undefined {
    return this.#lastMs.length < durationsMin ? undefined : this.#lastMs.toSorted((a, b) => a - b);
  }
}

/** The times that were told, the earliest first. */
export class ToldTimes {
  readonly #atMs: number[] = [];

  get atMs(): readonly number[] {
    return this.#atMs;
  }

  /** A request is there: if a told time has come, it is the one who was told it. */
  comeBack(nowMs: number): void {
    while (this.#atMs.length > 0 && this.#atMs[0]! < nowMs - lateMsMax) this.#atMs.shift();
    if (this.#atMs.length > 0 && this.#atMs[0]! <= nowMs) this.#atMs.shift();
  }

  add(atMs: number): void {
    if (this.#atMs.length >= toldMax) return;
    this.#atMs.splice(this.#atMs.findLastIndex((earlier) => earlier <= atMs) + 1, 0, atMs);
  }
}
