/** Attempts that are let through: a burst, then one more each time the bucket has leaked one. Pure. */
export interface BucketRule {
  readonly burst: number;
  /** In how long one attempt is forgotten. */
  readonly leakMs: number;
}

export interface Bucket {
  readonly level: number;
  readonly atMs: number;
}

export function leaked({ level, atMs }: Bucket, rule: BucketRule, nowMs: number): number {
  // A clock that was set back forgives nothing and adds nothing.
  return Math.max(0, level - Math.max(0, nowMs - atMs) / rule.leakMs);
}

/** 0: one more attempt is let through now. */
export function waitMs(bucket: Bucket, rule: BucketRule, nowMs: number): number {
  return Math.max(0, leaked(bucket, rule, nowMs) + 1 - rule.burst) * rule.leakMs;
}
