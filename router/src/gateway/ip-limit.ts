/** How many requests one address may send: a bucket that refills, one per address, in a table of bounded size. */
import type { Clock } from "@weiche/shared/clock.ts";

export interface IpLimitSettings {
  /** 0 turns the limit off. */
  readonly perIpPerSecond: number;
  readonly perIpBurst: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

export const addressesMax = 100_000;

export class IpLimit {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #burst: number;
  /** Addresses seen since the last turn, and those of the turn before: whoever rests longer has a full bucket again. */
  #recent = new Map<string, Bucket>();
  #earlier = new Map<string, Bucket>();
  #turnedAtMs: number;

  constructor(settings: IpLimitSettings, clock: Clock) {
    this.#clock = clock;
    this.#perMs = settings.perIpPerSecond / 1_000;
    this.#burst = Math.max(1, settings.perIpBurst);
    this.#turnedAtMs = clock.monotonicMs();
  }

  /** Whether one more request of this address is let in. A refused one takes nothing. */
  admit(address: string): boolean {
    if (this.#perMs === 0) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#turn(nowMs);
    let bucket = this.#recent.get(address);
    if (!bucket) {
      bucket = this.#earlier.get(address) ?? { tokens: this.#burst, atMs: nowMs };
      this.#recent.set(address, bucket);
    }
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (nowMs - bucket.atMs) * this.#perMs);
    bucket.atMs = nowMs;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }

  /** Addresses that are remembered, some of them twice. */
  get size(): number {
    return this.#recent.size + this.#earlier.size;
  }

  /** Under a flood of addresses it turns earlier; one that keeps asking is carried over. */
  #turn(nowMs: number): void {
    const isFullAgain = nowMs - this.#turnedAtMs >= this.#burst / this.#perMs;
    if (!isFullAgain && this.#recent.size < addressesMax / 2) return;
    this.#turnedAtMs = nowMs;
    this.#earlier = this.#recent;
    this.#recent = new Map();
  }
}
