import fc from "fast-check";
import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type AccountId, type RequestId } from "@weiche/shared/ids.ts";
import { MemoryLimiter, windowMs } from "./memory-limiter.ts";

const account = asId<AccountId>("a");
const request = (n: number) => asId<RequestId>(`r${n}`);

function setUp() {
  const clock = new VirtualClock();
  return { clock, limiter: new MemoryLimiter(clock) };
}

test("of 500 requests at once exactly the parallel limit is admitted", () => {
  const { limiter } = setUp();
  const limits = { perMinute: 1_000, parallel: 10 };
  const decisions = Array.from({ length: 500 }, (_, n) => limiter.enter(account, request(n), limits));
  expect(decisions.filter((d) => d.admitted).length).toBe(10);
  expect(decisions[10]).toEqual({ admitted: false, limit: "parallel", retryAfterMs: 1_000 });
});

test("a burst across the boundary of a minute is seen whole", () => {
  const { clock, limiter } = setUp();
  const limits = { perMinute: 30, parallel: 1_000 };
  clock.advance(59_000);
  let admitted = 0;
  for (let n = 0; n < 60; n++) {
    if (n === 30) clock.advance(2_000);
    if (limiter.enter(account, request(n), limits).admitted) admitted++;
  }
  expect(admitted).toBe(30);
});

test("a refusal says when the next place is free, and then it is", () => {
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

test("a refusal by the parallel limit does not count for the minute", () => {
  const { limiter } = setUp();
  const limits = { perMinute: 2, parallel: 1 };
  limiter.enter(account, request(1), limits);
  for (let n = 10; n < 30; n++) limiter.enter(account, request(n), limits);
  limiter.leave(account, request(1));
  expect(limiter.enter(account, request(2), limits).admitted).toBe(true);
});

test("a refusal by the minute takes no parallel place", () => {
  const { clock, limiter } = setUp();
  const limits = { perMinute: 1, parallel: 2 };
  limiter.enter(account, request(1), limits);
  limiter.enter(account, request(2), limits);
  clock.advance(windowMs);
  expect(limiter.enter(account, request(3), limits).admitted).toBe(true);
});

test("all that hold a place are counted, over all accounts, and each only once", () => {
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

test("leaving twice, or without having entered, gives no second place", () => {
  const { limiter } = setUp();
  const limits = { perMinute: 100, parallel: 1 };
  limiter.enter(account, request(1), limits);
  limiter.leave(account, request(1));
  limiter.leave(account, request(1));
  limiter.leave(account, request(9));
  expect(limiter.enter(account, request(2), limits).admitted).toBe(true);
  expect(limiter.enter(account, request(3), limits).admitted).toBe(false);
});

test("a request that is in already is admitted again without counting", () => {
  const { limiter } = setUp();
  const limits = { perMinute: 1, parallel: 1 };
  limiter.enter(account, request(1), limits);
  expect(limiter.enter(account, request(1), limits).admitted).toBe(true);
});

test("a lowered limit waits until enough places are free", () => {
  const { clock, limiter } = setUp();
  for (let n = 0; n < 4; n++, clock.advance(1_000)) limiter.enter(account, request(n), { perMinute: 10, parallel: 10 });
  const decision = limiter.enter(account, request(9), { perMinute: 2, parallel: 10 });
  expect(decision).toEqual({ admitted: false, limit: "minute", retryAfterMs: 58_000 });
});

test("idle accounts are forgotten, those with a running request are not", () => {
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

test("whatever happens, the limits hold in every window and for every moment", () => {
  const step = fc.record({ afterMs: fc.nat(20_000), enter: fc.boolean(), which: fc.nat(7) });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 80 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 4 }),
      (steps, perMinute, parallel) => {
        const { clock, limiter } = setUp();
        const times: number[] = [];
        const live = new Set<RequestId>();
        let made = 0;
        for (const { afterMs, enter, which } of steps) {
          clock.advance(afterMs);
          if (!enter) {
            const gone = [...live][which % Math.max(1, live.size)] ?? request(-1);
            live.delete(gone);
            limiter.leave(account, gone);
            continue;
          }
          const inWindow = times.filter((t) => t > clock.now() - windowMs).length;
          expect(limiter.use(account)).toEqual({ lastMinute: inWindow, parallel: live.size });
          const expected = inWindow < perMinute && live.size < parallel;
          const id = request(made++);
          expect(limiter.enter(account, id, { perMinute, parallel }).admitted).toBe(expected);
          if (!expected) continue;
          times.push(clock.now());
          live.add(id);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("a refusal never says more than a minute, whatever fraction of a millisecond it is", () => {
  // A minute after this time is, as a number, a little more than a minute away.
  const clock = new VirtualClock(122_487.64553350267);
  const limiter = new MemoryLimiter(clock);
  const limits = { perMinute: 1, parallel: 10 };
  limiter.enter(account, request(1), limits);
  const refusal = limiter.enter(account, request(2), limits);
  expect(refusal).toEqual({ admitted: false, limit: "minute", retryAfterMs: windowMs });
});
