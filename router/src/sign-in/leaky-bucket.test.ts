import fc from "fast-check";
import { expect, test } from "vitest";
import { leaked, waitMs, type Bucket } from "./leaky-bucket.ts";

const rule = { burst: 8, leakMs: 120_000 };

test("a burst is admitted at once, then one attempt for each that has leaked", () => {
  let bucket: Bucket = { level: 0, atMs: 0 };
  const attempt = (nowMs: number) => {
    const wait = waitMs(bucket, rule, nowMs);
    if (wait === 0) bucket = { level: leaked(bucket, rule, nowMs) + 1, atMs: nowMs };
    return wait;
  };
  for (let n = 0; n < 8; n++) expect(attempt(1_000)).toBe(0);
  expect(attempt(1_000)).toBe(120_000);
  expect(attempt(61_000)).toBe(60_000);
  expect(attempt(121_000)).toBe(0);
  expect(attempt(121_000)).toBe(120_000);
  expect(attempt(121_000 + 8 * 120_000)).toBe(0);
});

test("an attempt after its waiting time is admitted, and never more than burst and time allow", () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 400_000 }), { maxLength: 60 });
  fc.assert(
    fc.property(gaps, (waits) => {
      let bucket: Bucket = { level: 0, atMs: 0 };
      let [nowMs, passed] = [0, 0];
      for (const gap of waits) {
        nowMs += gap;
        const wait = waitMs(bucket, rule, nowMs);
        expect(waitMs(bucket, rule, nowMs + Math.ceil(wait) + 1)).toBe(0);
        if (wait > 0) continue;
        bucket = { level: leaked(bucket, rule, nowMs) + 1, atMs: nowMs };
        passed++;
      }
      expect(passed).toBeLessThanOrEqual(rule.burst + nowMs / rule.leakMs);
    }),
  );
});

test("a clock that is set back neither empties nor fills a bucket", () => {
  expect(leaked({ level: 5, atMs: 1_000_000 }, rule, 0)).toBe(5);
});
