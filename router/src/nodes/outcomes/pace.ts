/** How long the first byte of a model's answers takes in one slot, by the length of what was asked. */

/** Outcomes before a pace is known. */
const knownAfter = 5;
const newestWeight = 1 / 8;
/** A body this long takes longer. */
const bytesOfOne = 4 << 10;
/** A slot is slow if its first byte takes so many times longer than in the others, and at least so long. */
const slowTimes = 20;
export const slowMsMin = 3_000;

export class Pace {
  #count = 0;
  #meanLog = 0;

  /** In ms. Undefined: too few answers are known. */
  get usual(): number | undefined {
    return this.#count < knownAfter ? undefined : Math.exp(this.#meanLog);
  }

  take(firstByteMs: number, bodyBytes: number): void {
    const weight = Math.max(newestWeight, 1 / ++this.#count);
    this.#meanLog += weight * (Math.log(paceOf(firstByteMs, bodyBytes)) - this.#meanLog);
  }
}

/** `others`: the usual paces in other slots. Half of them at least must be far faster. */
export function isSlow(firstByteMs: number, bodyBytes: number, others: readonly number[]): boolean {
  const usual = others.toSorted((a, b) => a - b)[(others.length - 1) >> 1];
  return usual !== undefined && paceOf(firstByteMs, bodyBytes) >= slowTimes * usual;
}

function paceOf(firstByteMs: number, bodyBytes: number): number {
  return Math.max(1, firstByteMs) / Math.max(1, bodyBytes / bytesOfOne);
}
