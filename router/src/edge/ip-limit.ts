/**
 * Token bucket per client address, in a table of bounded size. The addresses of an IPv6 /64 share one bucket, and
 * the /64s of a /48 share a larger one.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { lineAndSiteOf } from "./client-network.ts";

export interface IpLimitSettings {
  /** 0 turns the limit off. */
  readonly perIpPerSecond: number;
  readonly perIpBurst: number;
}

/** Multiplies a request limit, for events that cost less than a request. */
export function timesAsMany({ perIpPerSecond, perIpBurst }: IpLimitSettings, factor: number): IpLimitSettings {
  return { perIpPerSecond: perIpPerSecond * factor, perIpBurst: perIpBurst * factor };
}

interface Bucket {
  tokens: number;
  atMs: number;
}

export const addressesMax = 100_000;
/** The bucket of an IPv6 site (/48) is as large as those of so many lines (/64). */
export const linesPerSite = 16;

export class IpLimit {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #burst: number;
  /** Buckets used since the last `#turn`, and in the turn before. Longer idle addresses have a full bucket again. */
  #recent = new Map<string, Bucket>();
  #earlier = new Map<string, Bucket>();
  #turnedAtMs: number;

  constructor(settings: IpLimitSettings, clock: Clock) {
    this.#clock = clock;
    this.#perMs = settings.perIpPerSecond / 1_000;
    this.#burst = Math.max(1, settings.perIpBurst);
    this.#turnedAtMs = clock.monotonicMs();
  }

  /** Whether one more request is admitted. A refused one takes no token. */
  admit(address: string): boolean {
    if (this.#perMs === 0) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#turn(nowMs);
    const [line, site] = address.includes(":") ? lineAndSiteOf(address) : [address];
    const ofLine = this.#bucket(line, nowMs, 1);
    const ofSite = site === undefined ? undefined : this.#bucket(site, nowMs, linesPerSite);
    if (ofLine.tokens < 1 || (ofSite && ofSite.tokens < 1)) return false;
    ofLine.tokens--;
    if (ofSite) ofSite.tokens--;
    return true;
  }

  /** The bucket, refilled up to now. */
  #bucket(key: string, nowMs: number, factor: number): Bucket {
    const full = this.#burst * factor;
    let bucket = this.#recent.get(key);
    if (!bucket) {
      bucket = this.#earlier.get(key) ?? { tokens: full, atMs: nowMs };
      this.#recent.set(key, bucket);
    }
    bucket.tokens = Math.min(full, bucket.tokens + (nowMs - bucket.atMs) * this.#perMs * factor);
    bucket.atMs = nowMs;
    return bucket;
  }

  /** Number of buckets in memory; an address may have two. */
  get size(): number {
    return this.#recent.size + this.#earlier.size;
  }

  /** Forgets idle addresses once their buckets would be full, or earlier under a flood of addresses. */
  #turn(nowMs: number): void {
    const isFullAgain = nowMs - this.#turnedAtMs >= this.#burst / this.#perMs;
    if (!isFullAgain && this.#recent.size < addressesMax / 2) return;
    this.#turnedAtMs = nowMs;
    this.#earlier = this.#recent;
    this.#recent = new Map();
  }
}
