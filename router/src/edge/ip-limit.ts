/**
 * A token bucket per client address, in a table of bounded size. The addresses of an IPv6 /64 share one bucket, and the
 * /64s of a /48 share a larger one.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { lineAndSiteOf, unknownAddress } from "./client-network.ts";

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
  /** The latest time for which a refused request was asked to return. */
  toldMs: number;
}

/** Official clients ignore longer retry times. */
const toldMsMax = 60_000;
/** Slightly below 1, because refills are sums of rounded fractions. */
const wholeToken = 1 - 1e-6;

export const addressesMax = 100_000;
/** The bucket of an IPv6 site (/48) is this many times the bucket of a line (/64). */
export const linesPerSite = 16;

export class IpLimit {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #burst: number;
  /** Buckets used since the last `#turn`, and in the turn before. Older buckets are full again, so they are dropped. */
  #recent = new Map<string, Bucket>();
  #earlier = new Map<string, Bucket>();
  #turnedAtMs: number;

  constructor(settings: IpLimitSettings, clock: Clock) {
    this.#clock = clock;
    this.#perMs = settings.perIpPerSecond / 1_000;
    this.#burst = Math.max(1, settings.perIpBurst);
    this.#turnedAtMs = clock.monotonicMs();
  }

  /** Takes a token and returns whether the request is admitted. A refused request takes no token. */
  admit(address: string): boolean {
    return this.#take(address, 1);
  }

  /** Returns whether `admit` would admit a request now. Takes no token. */
  hasRoom(address: string): boolean {
    return this.#take(address, 0);
  }

  /**
   * Takes a token for what has been admitted by `hasRoom`, even if none is left. So many that were admitted at the same
   * time are followed by a pause.
   */
  charge(address: string): void {
    this.#take(address, 1, -Infinity);
  }

  #take(address: string, tokens: 0 | 1, least = wholeToken): boolean {
    if (this.#perMs === 0 || address === unknownAddress) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#turn(nowMs);
    const buckets = this.#bucketsOf(address, nowMs);
    if (buckets.some(({ bucket }) => bucket.tokens < least)) return false;
    for (const { bucket } of buckets) bucket.tokens -= tokens;
    return true;
  }

  /**
   * Returns after how many whole seconds a refused request should be sent again. The k-th refused request gets the time of
   * the k-th token, so that they do not all return at once. No token is reserved.
   */
  retryAfterSeconds(address: string): number {
    const nowMs = this.#clock.monotonicMs();
    const waitMs = Math.max(
      ...this.#bucketsOf(address, nowMs).map(({ bucket, factor }) => this.#tell(bucket, nowMs, factor) - nowMs),
    );
    return Math.max(1, Math.ceil(Math.min(waitMs, toldMsMax) / 1_000 - 1e-6));
  }

  #tell(bucket: Bucket, nowMs: number, factor: number): number {
    const perMs = this.#perMs * factor;
    if (bucket.tokens >= wholeToken) return nowMs;
    // At most a full bucket of requests returns within the same second.
    const stepMs = Math.max(1 / perMs, 1_000 / (this.#burst * factor));
    const freeMs = Math.max(nowMs + (1 - bucket.tokens) / perMs, bucket.toldMs + stepMs);
    if (freeMs - nowMs <= toldMsMax) bucket.toldMs = freeMs;
    return freeMs;
  }

  #bucketsOf(address: string, nowMs: number): { readonly bucket: Bucket; readonly factor: number }[] {
    const [line, site] = address.includes(":") ? lineAndSiteOf(address) : [address];
    const buckets = [{ bucket: this.#bucket(line, nowMs, 1), factor: 1 }];
    if (site !== undefined) buckets.push({ bucket: this.#bucket(site, nowMs, linesPerSite), factor: linesPerSite });
    return buckets;
  }

  /** Returns the bucket, refilled up to now. */
  #bucket(key: string, nowMs: number, factor: number): Bucket {
    const full = this.#burst * factor;
    let bucket = this.#recent.get(key);
    if (!bucket) {
      bucket = this.#earlier.get(key) ?? { tokens: full, atMs: nowMs, toldMs: -Infinity };
      this.#recent.set(key, bucket);
    }
    bucket.tokens = Math.min(full, bucket.tokens + (nowMs - bucket.atMs) * this.#perMs * factor);
    bucket.atMs = nowMs;
    return bucket;
  }

  /** Number of buckets in memory. An IPv6 address has two. */
  get size(): number {
    return this.#recent.size + this.#earlier.size;
  }

  /** Drops idle addresses once their buckets would be full, or earlier under a flood of addresses. */
  #turn(nowMs: number): void {
    const isFullAgain = nowMs - this.#turnedAtMs >= this.#burst / this.#perMs;
    if (!isFullAgain && this.#recent.size < addressesMax / 2) return;
    this.#turnedAtMs = nowMs;
    this.#earlier = this.#recent;
    this.#recent = new Map();
  }
}
