/** Tests routers whose limit store is slow, gone, loses its data or returns, on virtual time. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { sleep } from "@weiche/shared/time/clock.ts";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import { windowMs } from "../../src/limits/told-times.ts";
import { SharedLimiter, type SharedLimiterEvents } from "../../src/limits/shared-limiter.ts";
import type { LimitStore } from "../../src/limits/limit-store.ts";
import type { LimitDecision } from "../../src/limits/limiter.ts";
import { requestOf, SimulatedStore } from "./simulated-store.ts";

const account = asId<AccountId>("a");

interface SetUpOptions {
  readonly routers?: number;
  readonly whenDown?: "full" | "share";
  readonly fault?: "none" | "silent";
  /** The time that a request needs to reach the store. Other commands need none. */
  readonly enterMs?: number;
}

async function setUp({ routers = 1, whenDown = "full", fault = "none", enterMs }: SetUpOptions = {}) {
  const clock = new VirtualClock();
  const store = new SimulatedStore(clock);
  store.fault = fault;
  const told: string[] = [];
  const events: SharedLimiterEvents = {
    limitStoreLost: (reason) => void told.push(`lost: ${reason}`),
    limitStoreBack: (aloneMs) => void told.push(`back after ${aloneMs} ms`),
    limitDecidedAlone() {},
    limitStoreAnswered() {},
  };
  const open = (name: string) => {
    const own = new MemoryLimiter(clock);
    const direct = store.of(name);
    const late: LimitStore["enter"] = (...asked) => sleep(clock, enterMs!).then(() => direct.enter(...asked));
    const used = enterMs === undefined ? direct : { ...direct, enter: late };
    return SharedLimiter.open({ store: used, own, clock, events, whenDown, routers: () => routers });
  };
  const opening = Promise.all(Array.from({ length: routers }, (_, n) => open(String(n))));
  if (fault !== "none") await clock.advanceAsync(2_000);
  return { clock, store, told, limiters: await opening };
}

type SetUp = Awaited<ReturnType<typeof setUp>>;

/** Sends `count` requests to each router and returns how many are admitted after the longest wait. */
async function admitted({ limiters, clock }: Pick<SetUp, "limiters" | "clock">, count: number, limits: Limits) {
  const asked = limiters.flatMap((limiter, of) =>
    Array.from({ length: count }, (_, n) => limiter.enter(account, requestOf(of * 1_000 + n), limits)),
  );
  await clock.advanceAsync(100);
  return (await Promise.all(asked)).filter((decision) => decision.admitted).length;
}

interface Limits {
  readonly perMinute: number;
  readonly parallel: number;
}

test("a store that stops answering delays one request by 100 ms and no later request", async () => {
  const { clock, store, told, limiters } = await setUp();
  const limits = { perMinute: 10, parallel: 10 };
  store.fault = "silent";
  let decision: LimitDecision | undefined;
  void limiters[0]!.enter(account, requestOf(1), limits).then((made) => (decision = made));
  await clock.advanceAsync(99);
  expect([decision, told]).toEqual([undefined, []]);
  await clock.advanceAsync(1);
  expect([decision, told]).toEqual([{ admitted: true }, ["lost: it took longer than 100 ms"]]);
  expect(await limiters[0]!.enter(account, requestOf(2), limits)).toEqual({ admitted: true });
});

test("an answer that has arrived is used even if the process was blocked for longer than the timeout", async () => {
  const { clock, store, told, limiters } = await setUp();
  store.fault = "unread";
  const decided = limiters[0]!.enter(account, requestOf(1), { perMinute: 1, parallel: 1 });
  clock.advance(3_000);
  expect(await decided).toEqual({ admitted: true });
  expect(told).toEqual([]);
});

test("a store that returns decides again within a second, and the event is sent once", async () => {
  const rig = await setUp({ routers: 2 });
  const { clock, store, told, limiters } = rig;
  store.fault = "refusing";
  expect(await admitted(rig, 5, { perMinute: 100, parallel: 3 })).toBe(6);
  await clock.advanceAsync(30_000);
  store.heal();
  await clock.advanceAsync(1_000);
  expect(told.toSorted()).toEqual([
    ...Array(2).fill(expect.stringMatching(/^back after/)),
    "lost: READONLY",
    "lost: READONLY",
  ]);
  for (const limiter of limiters) expect(limiter.alone).toBeUndefined();
  expect(await limiters[0]!.use(account)).toEqual({ lastMinute: 0, parallel: 6 });
});

test("a router that starts without its store serves after a second by its own count", async () => {
  const rig = await setUp({ fault: "silent" });
  expect(rig.told).toEqual(["lost: it took longer than 100 ms"]);
  expect(await admitted(rig, 9, { perMinute: 100, parallel: 3 })).toBe(3);
});

test.each([
  [{ perMinute: 100, parallel: 6 }, 24, 4],
  [{ perMinute: 9, parallel: 100 }, 36, 8],
  [{ perMinute: 2, parallel: 2 }, 8, 4],
])(
  "limits of %j allow four routers without a store %i requests together, or %i if each router takes its share",
  async (limits, full, share) => {
    for (const [whenDown, sum] of [
      ["full", full],
      ["share", share],
    ] as const) {
      const rig = await setUp({ routers: 4, whenDown });
      rig.store.fault = "silent";
      expect(await admitted(rig, 50, limits)).toBe(sum);
    }
  },
);

test("a refusal by the minute is repeated without the store until its time, unless the account's limit changes", async () => {
  const { clock, store, limiters } = await setUp({ routers: 2 });
  const [one, other] = limiters as [SharedLimiter, SharedLimiter];
  const limits = { perMinute: 1, parallel: 10 };
  await one.enter(account, requestOf(1), limits);
  await clock.advanceAsync(10_000);
  expect(await other.enter(account, requestOf(2), limits)).toMatchObject({ limit: "minute", retryAfterMs: 50_000 });
  await clock.advanceAsync(10_000);
  const before = store.asked;
  // The place that becomes free in 40 s was announced to another request. No other place becomes free within a minute.
  for (let n = 0; n < 10; n++)
    expect(await other.enter(account, requestOf(3), limits)).toMatchObject({ limit: "minute", retryAfterMs: 60_000 });
  expect(store.asked).toBe(before + 1);
  expect(await other.enter(account, requestOf(4), { ...limits, perMinute: 2 })).toEqual({ admitted: true });
  await clock.advanceAsync(40_000);
  one.leave(account, requestOf(1));
  expect(await other.enter(account, requestOf(5), limits)).toMatchObject({ limit: "minute", retryAfterMs: 20_000 });
});

test("a client is admitted at another router although the store learns 9 ms later that its last answer has ended", async () => {
  const { clock, limiters } = await setUp({ routers: 2 });
  const [one, other] = limiters as [SharedLimiter, SharedLimiter];
  const limits = { perMinute: 100, parallel: 1 };
  await one.enter(account, requestOf(1), limits);
  const asked = other.enter(account, requestOf(2), limits);
  await clock.advanceAsync(9);
  one.leave(account, requestOf(1));
  await clock.advanceAsync(1);
  expect(await asked).toEqual({ admitted: true });
  const refused = one.enter(account, requestOf(3), limits);
  await clock.advanceAsync(10);
  expect(await refused).toMatchObject({ admitted: false, limit: "parallel" });
});

test("the places of a gone router become free within 15 s and not while it may live", async () => {
  const { clock, limiters } = await setUp({ routers: 2 });
  const [gone, other] = limiters as [SharedLimiter, SharedLimiter];
  const limits = { perMinute: 100, parallel: 2 };
  for (const n of [1, 2]) await gone.enter(account, requestOf(n), limits);
  await clock.advanceAsync(60_000);
  await gone[Symbol.asyncDispose]();
  await clock.advanceAsync(9_000);
  const refused = other.enter(account, requestOf(3), limits);
  await clock.advanceAsync(6_000);
  expect((await refused).admitted).toBe(false);
  expect((await other.enter(account, requestOf(3), limits)).admitted).toBe(true);
});

test("requests that a stopped store reads late hold places for at most 5 s", async () => {
  const { clock, store, limiters } = await setUp();
  const [limiter] = limiters as [SharedLimiter];
  const limits = { perMinute: 100, parallel: 2 };
  store.fault = "silent";
  const asked = [1, 2].map((n) => limiter.enter(account, requestOf(n), limits));
  await clock.advanceAsync(100);
  expect(await Promise.all(asked)).toEqual([{ admitted: true }, { admitted: true }]);
  for (const n of [1, 2]) limiter.leave(account, requestOf(n));
  store.heal();
  expect(await store.of("other").use(account)).toMatchObject({ parallel: 2 });
  await clock.advanceAsync(5_000);
  expect(await store.of("other").use(account)).toMatchObject({ parallel: 0 });
});

test("leases that ended but return with a failover end again within 5 s", async () => {
  const { clock, store, limiters } = await setUp();
  const [limiter] = limiters as [SharedLimiter];
  await limiter.enter(account, requestOf(1), { perMinute: 100, parallel: 2 });
  const failOver = store.replicate();
  limiter.leave(account, requestOf(1));
  await settle();
  failOver();
  expect(await store.of("other").use(account)).toMatchObject({ parallel: 1 });
  await clock.advanceAsync(5_000);
  expect(await store.of("other").use(account)).toMatchObject({ parallel: 0 });
});

test("no router exceeds the limit by its own requests after the store lost all data", async () => {
  const { store, limiters } = await setUp();
  const [limiter] = limiters as [SharedLimiter];
  const limits = { perMinute: 3, parallel: 2 };
  const enter = (n: number) => limiter.enter(account, requestOf(n), limits);
  for (const n of [1, 2]) await enter(n);
  store.flush();
  expect(await enter(3)).toMatchObject({ admitted: false, limit: "parallel" });
  limiter.leave(account, requestOf(1));
  expect(await enter(4)).toEqual({ admitted: true });
  limiter.leave(account, requestOf(2));
  store.flush();
  expect(await enter(5)).toMatchObject({ admitted: false, limit: "minute" });
});

test("a renewal that the store reads before the requests that ask gives none of them a place", async () => {
  const limits = { perMinute: 1_000, parallel: 4 };
  const routers = await setUp({ routers: 2, enterMs: 25 });
  // The renewals come 5 s after the start.
  await routers.clock.advanceAsync(4_980);
  expect(await admitted(routers, 10, limits)).toBe(4);
});

test("a store that returns receives no renewals for idle accounts", async () => {
  const { clock, store, limiters } = await setUp();
  const [limiter] = limiters as [SharedLimiter];
  for (let n = 0; n < 100; n++) {
    await limiter.enter(asId<AccountId>(`a${n}`), requestOf(n), { perMinute: 1, parallel: 1 });
    limiter.leave(asId<AccountId>(`a${n}`), requestOf(n));
  }
  await clock.advanceAsync(30_000);
  store.fault = "refusing";
  await clock.advanceAsync(5_000);
  store.heal();
  const before = store.asked;
  await clock.advanceAsync(500);
  expect(limiter.alone).toBeUndefined();
  expect(store.asked - before).toBe(1);
});

test("despite any faults of the store each router keeps the limits, and after its return all routers together do", async () => {
  const faults = ["silent", "refusing", "flush", "fail over", "heal"] as const;
  const step = fc.record({
    afterMs: fc.oneof(fc.nat(300), fc.nat(8_000)),
    router: fc.nat(2),
    what: fc.oneof(
      { weight: 5, arbitrary: fc.constant("enter" as const) },
      { weight: 3, arbitrary: fc.constant("leave" as const) },
      { weight: 2, arbitrary: fc.constantFrom(...faults) },
    ),
  });
  const limits = { perMinute: 6, parallel: 3 };
  const check = async (steps: readonly { afterMs: number; router: number; what: string }[]) => {
    const { clock, store, limiters } = await setUp({ routers: 3 });
    const routers = limiters.map((limiter) => ({ limiter, live: new Set<number>(), times: [] as number[] }));
    let replica = store.replicate();
    let made = 0;
    const enter = async ({ limiter, live, times }: (typeof routers)[number]) => {
      const id = made++;
      const asked = limiter.enter(account, requestOf(id), limits);
      await clock.advanceAsync(100);
      if (!(await asked).admitted) return false;
      live.add(id);
      times.push(clock.now());
      // No router alone exceeds the limits of the account, whatever data the store has.
      expect(live.size).toBeLessThanOrEqual(limits.parallel);
      expect(times.filter((at) => at > clock.now() - windowMs + 100).length).toBeLessThanOrEqual(limits.perMinute);
      return true;
    };
    const leave = ({ limiter, live }: (typeof routers)[number], id: number) => {
      limiter.leave(account, requestOf(id));
      live.delete(id);
    };
    for (const { afterMs, router, what } of steps) {
      await clock.advanceAsync(afterMs);
      const at = routers[router]!;
      const [first] = at.live;
      if (what === "enter") await enter(at);
      else if (what === "leave" && first !== undefined) leave(at, first);
      else if (what === "heal") store.heal();
      else if (what === "flush") store.flush();
      else if (what === "fail over") replica();
      else if (what === "silent" || what === "refusing") store.fault = what;
      if (router === 0) replica = store.replicate();
    }
    store.heal();
    await clock.advanceAsync(5_000);
    const running = () => routers.reduce((sum, { live }) => sum + live.size, 0);
    for (const { limiter } of routers) expect((await limiter.use(account)).parallel).toBe(running());
    await clock.advanceAsync(windowMs);
    for (const at of routers) for (const id of at.live) leave(at, id);
    const admissions = [];
    for (let n = 0; n < 9; n++) {
      const at = routers[n % 3]!;
      admissions.push(await enter(at));
      for (const id of at.live) leave(at, id);
    }
    expect(admissions.filter(Boolean).length).toBe(limits.perMinute);
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), check), { numRuns: 150 });
});

test("500 simultaneous refusals ask the store only until no retry time within a minute is left", async () => {
  const { clock, store, limiters } = await setUp();
  const [limiter] = limiters as [SharedLimiter];
  const limits = { perMinute: 1_000, parallel: 1 };
  await limiter.enter(account, requestOf(0), limits);
  const before = store.asked;
  const refused = Array.from({ length: 500 }, (_, n) => limiter.enter(account, requestOf(n + 1), limits));
  await clock.advanceAsync(10);
  const told = (await Promise.all(refused)).map((decision) => !decision.admitted && decision.retryAfterMs / 1_000);
  expect(told.slice(0, 9)).toEqual([7, 14, 21, 28, 35, 42, 49, 56, 60]);
  expect(new Set(told.slice(8))).toEqual(new Set([60]));
  expect(store.asked - before).toBeLessThan(12);
});
