/** How long the first byte of a model's answers takes in one slot, in relation to the request's length. */

/** Number of outcomes before a pace is known. */
const knownAfter = 5;
const newestWeight = 1 / 8;
/** The expected time grows with the body from this length on. */
const bytesOfOne = 4 << 10;
/** A slot is slow if its first byte takes this many times longer than in the other slots, and at least `slowMsMin`. */
const slowTimes = 20;
export const slowMsMin = 3_000;

export class Pace {
  #count = 0;
  #meanLog = 0;

  /** The usual pace in ms. Undefined while too few answers are known. */
  get usual(): number | undefined {
    return this.#count < knownAfter ? undefined : Math.exp(this.#meanLog);
  }

  take(firstByteMs: number, bodyBytes: number): void {
    const weight = Math.max(newestWeight, 1 / ++this.#count);
    this.#meanLog += weight * (Math.log(paceOf(firstByteMs, bodyBytes)) - this.#meanLog);
  }
}

/** `others` are the usual paces in other slots. At least half of them must be far faster. */
export function isSlow(firstByteMs: number, bodyBytes: number, others: readonly number[]): boolean {
  const usual = others.toSorted((a, b) => a - b)[(others.length - 1) >> 1];
  return usual !== undefined && paceOf(firstByteMs, bodyBytes) >= slowTimes * usual;
}

function paceOf(firstByteMs: number, bodyBytes: number): number {
  return Math.max(1, firstByteMs) / Math.max(1, bodyBytes / bytesOfOne);
}
