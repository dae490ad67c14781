/** Tests rules of the memory limiter only. test/limits/limiter-contract.process.test.ts tests the rules of all limiters. */
import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type AccountId, type RequestId } from "@weiche/shared/ids.ts";
import { MemoryLimiter } from "./memory-limiter.ts";
import { windowMs } from "./told-times.ts";

const account = asId<AccountId>("a");
const request = (n: number) => asId<RequestId>(`r${n}`);

function setUp() {
  const clock = new VirtualClock();
  return { clock, limiter: new MemoryLimiter(clock) };
}

test("a refused request is admitted after its retry time and not a millisecond earlier [S19.2]", () => {
  const { clock, limiter } = setUp();
  const limits = { perMinute: 2, parallel: 10 };
  limiter.enter(account, request(1), limits);
  clock.advance(10_000);
  limiter.enter(account, request(2), limits);
  clock.advance(5_000);
  expect(limiter.enter(account, request(3), limits)).toEqual({
    admitted: false,
    limit: "minute",
    retryAfterMs: 45_000,
  });
  clock.advance(44_999);
  expect(limiter.enter(account, request(3), limits).admitted).toBe(false);
  clock.advance(1);
  expect(limiter.enter(account, request(3), limits).admitted).toBe(true);
});

test("each running request of any account is counted once", () => {
  const { limiter } = setUp();
  const limits = { perMinute: 100, parallel: 2 };
  const other = asId<AccountId>("b");
  for (const n of [1, 1, 2, 3]) limiter.enter(account, request(n), limits);
  limiter.enter(other, request(4), limits);
  expect(limiter.running).toBe(3);
  for (const n of [1, 1, 9]) limiter.leave(account, request(n));
  limiter.leave(other, request(4));
  expect(limiter.running).toBe(1);
});

test("after a limit is lowered, the retry time lasts until enough earlier requests are a minute old", () => {
  const { clock, limiter } = setUp();
  for (let n = 0; n < 4; n++, clock.advance(1_000)) limiter.enter(account, request(n), { perMinute: 10, parallel: 10 });
  const decision = limiter.enter(account, request(9), { perMinute: 2, parallel: 10 });
  expect(decision).toEqual({ admitted: false, limit: "minute", retryAfterMs: 58_000 });
});

test("idle accounts are forgotten, accounts with a running request are kept", () => {
  const { clock, limiter } = setUp();
  const limits = { perMinute: 10, parallel: 10 };
  for (let n = 0; n < 1_000; n++) {
    limiter.enter(asId<AccountId>(`a${n}`), request(n), limits);
    if (n > 0) limiter.leave(asId<AccountId>(`a${n}`), request(n));
  }
  clock.advance(2 * windowMs);
  limiter.enter(account, request(-1), limits);
  expect(limiter.size).toBe(2);
});

test("a retry time never exceeds a minute, despite rounded fractions of a millisecond", () => {
  // Rounding makes this time plus a minute, minus this time, a little more than a minute.
  const clock = new VirtualClock(122_487.64553350267);
  const limiter = new MemoryLimiter(clock);
  const limits = { perMinute: 1, parallel: 10 };
  limiter.enter(account, request(1), limits);
  const refusal = limiter.enter(account, request(2), limits);
  expect(refusal).toEqual({ admitted: false, limit: "minute", retryAfterMs: windowMs });
});

test("the highest use of an account is told once, and begins anew with what still runs", () => {
  const { clock, limiter } = setUp();
  const limits = { perMinute: 100, parallel: 10 };
  for (const n of [1, 2, 3]) limiter.enter(account, request(n), limits);
  for (const n of [1, 2]) limiter.leave(account, request(n));
  expect([...limiter.takePeaks()]).toEqual([[account, { lastMinute: 3, parallel: 3 }]]);
  clock.advance(windowMs);
  expect([...limiter.takePeaks()]).toEqual([[account, { lastMinute: 3, parallel: 1 }]]);
  expect([...limiter.takePeaks()]).toEqual([[account, { lastMinute: 0, parallel: 1 }]]);
  limiter.leave(account, request(3));
  limiter.takePeaks();
  expect([...limiter.takePeaks()]).toEqual([]);
});
