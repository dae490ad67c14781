/**
 * Estimates when a refused request would be admitted. The k-th refused request is given the k-th free time, so that not
 * all come back at once. Such a time reserves no place. `tellScript` computes the same in the limit store.
 */
import type { AccountLimits } from "./limiter.ts";

export const windowMs = 60_000;
/** The longest retry time. Official clients do not obey a longer one. */
export const toldMsMax = 60_000;
/** The most retry times remembered per account. Later refused requests are given a time that is not remembered. */
export const toldMax = 256;
/** A retry time is forgotten this long after it has passed. */
export const lateMsMax = 2_000;
/** A request may come back this much before its retry time. Timers of clients are not exact. */
export const earlyMsMax = 50;
/** The assumed age of a young answer if too few durations are known. */
export const youngMs = 750;
/**
 * The same for a request that has come back at its time and is refused again. Official clients retry only once more, so
 * it gets a time that is rather too late, whatever earlier answers took.
 */
export const youngAgainMs = 1_500;
/** If too few durations are known, an answer lasts this many times its age. With a heavy tail nine of ten end before. */
export const restFactor = 9;
/** The share of known answers that end before the given time. */
export const endedShare = 0.9;
/** The least number of known durations for an estimate. */
export const durationsMin = 3;
const durationsMax = 32;

interface Occupied {
  /** The times at which the requests of the last minute were admitted. */
  readonly admittedAtMs: readonly number[];
  /** The times at which the running requests were admitted. */
  readonly begunAtMs: readonly number[];
  /** The retry times given to other requests. */
  readonly toldAtMs: readonly number[];
  /** The durations of earlier requests, in ascending order. */
  readonly durationsMs: readonly number[];
  /** Whether the refused request was refused before, as far as its client says so or it comes at a retry time. */
  readonly hasComeBack: boolean;
}

/** Returns after how many whole seconds a refused request may come back, or undefined if they exceed `toldMsMax`. */
export function secondsToWait(occupied: Occupied, limits: AccountLimits, nowMs: number): number | undefined {
  const { admittedAtMs, begunAtMs, toldAtMs, durationsMs, hasComeBack } = occupied;
  const minuteEndsMs = [...admittedAtMs, ...toldAtMs].map((atMs) => atMs - nowMs + windowMs);
  const running = begunAtMs.map((atMs) => {
    const known = restMs(nowMs - atMs, durationsMs);
    return hasComeBack ? Math.max(known, restFactor * Math.max(nowMs - atMs, youngAgainMs)) : known;
  });
  const returning = toldAtMs.map((atMs) => atMs - nowMs + restMs(0, durationsMs));
  const waitMs = Math.max(freeIn(minuteEndsMs, limits.perMinute), freeIn([...running, ...returning], limits.parallel));
  return waitMs > toldMsMax ? undefined : Math.max(1, Math.ceil(waitMs / 1_000));
}

/** Returns when fewer than `limit` of these ends are still ahead. */
function freeIn(endsMs: readonly number[], limit: number): number {
  return limit < 1 ? Infinity : (endsMs.toSorted((a, b) => b - a)[limit - 1] ?? 0);
}

/** Estimates for how long an answer of this age continues. */
function restMs(ageMs: number, durationsMs: readonly number[]): number {
  const longer = durationsMs.filter((duration) => duration > ageMs);
  if (longer.length < durationsMin) return restFactor * Math.max(ageMs, youngMs);
  return longer[Math.ceil(longer.length * endedShare) - 1]! - ageMs;
}

/** Remembers the durations of the last requests. */
export class Durations {
  readonly #lastMs: number[] = [];
  #next = 0;

  note(durationMs: number): void {
    this.#lastMs[this.#next++ % durationsMax] = durationMs;
  }

  /** The known durations in ascending order. Undefined if there are too few. */
  get knownMs(): readonly number[] | undefined {
    return this.#lastMs.length < durationsMin ? undefined : this.#lastMs.toSorted((a, b) => a - b);
  }
}

/** The retry times given to refused requests, earliest first. */
export class ToldTimes {
  readonly #atMs: number[] = [];

  get atMs(): readonly number[] {
    return this.#atMs;
  }

  /**
   * Removes the first retry time that has passed, because the present request probably got that time. Returns whether
   * there was one.
   */
  comeBack(nowMs: number): boolean {
    while (this.#atMs.length > 0 && this.#atMs[0]! < nowMs - lateMsMax) this.#atMs.shift();
    return this.#atMs.length > 0 && this.#atMs[0]! <= nowMs + earlyMsMax && this.#atMs.shift() !== undefined;
  }

  add(atMs: number): void {
    if (this.#atMs.length >= toldMax) return;
    this.#atMs.splice(this.#atMs.findLastIndex((earlier) => earlier <= atMs) + 1, 0, atMs);
  }
}
