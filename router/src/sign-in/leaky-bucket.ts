/** A leaky bucket: admits a burst, then one attempt per `leakMs`. Pure. */
export interface BucketRule {
  readonly burst: number;
  /** Time in which one attempt leaks. */
  readonly leakMs: number;
}

export interface Bucket {
  readonly level: number;
  readonly atMs: number;
}

export function leaked({ level, atMs }: Bucket, rule: BucketRule, nowMs: number): number {
  // After the clock was set back, the level does not change.
  return Math.max(0, level - Math.max(0, nowMs - atMs) / rule.leakMs);
}

/** Returns how long to wait for the next attempt; 0 if it is admitted now. */
export function waitMs(bucket: Bucket, rule: BucketRule, nowMs: number): number {
  return Math.max(0, leaked(bucket, rule, nowMs) + 1 - rule.burst) * rule.leakMs;
}
