/** Tests the rules of every limiter: one router in memory, and three routers that share a server. */
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { asId, type AccountId, type RequestId } from "@weiche/shared/ids.ts";
import { windowMs } from "../../src/limits/told-times.ts";
import type { AccountLimits, LimitDecision } from "../../src/limits/limiter.ts";
import { inMemory, onServer, type LimiterRig, type SharedRig } from "./limiter-rigs.ts";
import { freePort, ValkeyServer } from "./valkey-server.ts";

const account = asId<AccountId>("a");
const request = (n: number) => asId<RequestId>(`r${n}`);
let rig: LimiterRig;

/** Asks the routers' limiters in turn. */
async function enter(n: number, limits: AccountLimits, of = account): Promise<LimitDecision> {
  return await rig.limiters[n % rig.limiters.length]!.enter(of, request(n), limits);
}

/** Resolves when the other routers can see that the request has left. */
async function leave(n: number): Promise<void> {
  const limiter = rig.limiters[n % rig.limiters.length]!;
  limiter.leave(account, request(n));
  await limiter.use(account);
}

async function use() {
  return await Promise.all(rig.limiters.map(async (limiter) => await limiter.use(account)));
}

describe("a limiter in memory", () => {
  contract(async () => inMemory(), 300);
});

describe.each([
  ["a server", [], (url: string) => url],
  [
    "a cluster",
    ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"],
    (url: string) => url.replace("valkey:", "valkey+cluster:"),
  ],
] as const)("a limiter of three routers with %s", needs("valkey-server"), (kind, options, addressOf) => {
  let server: ValkeyServer;
  beforeAll(async () => {
    // By default the cluster port is 10,000 higher, which ports above 55,535 do not allow.
    const clusterPort = kind === "a server" ? [] : ["--cluster-port", String(await freePort())];
    server = await ValkeyServer.start(...options, ...clusterPort);
    if (kind === "a server") return;
    await server.tell("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    while (!String(await server.tell("CLUSTER", "INFO")).includes("cluster_state:ok")) await sleep(50);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  contract(() => onServer(server, [account], addressOf(server.url)), 20);

  test("frees the places of a gone router after 15 s and keeps those of other routers [B4]", async () => {
    const limits = { perMinute: 100, parallel: 2 };
    const [gone] = (rig as SharedRig).limiters;
    for (const n of [0, 1]) await enter(n, limits);
    await rig.advance(20_000);
    await gone![Symbol.asyncDispose]();
    await rig.advance(5_000);
    expect(await enter(2, limits)).toMatchObject({ admitted: false, limit: "parallel" });
    await rig.advance(10_000);
    expect((await enter(2, limits)).admitted).toBe(true);
    expect(await enter(4, limits)).toMatchObject({ admitted: false, limit: "parallel" });
  });
});

/** Defines the tests of the contract. `runs`: how often the property test runs. */
function contract(open: () => Promise<LimiterRig>, runs: number): void {
  beforeEach(async () => {
    rig = await open();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  test("admits nothing if a limit is 0", async () => {
    for (const n of [0, 1, 2]) {
      const noMinute = { perMinute: 0, parallel: 10 };
      expect(await enter(n, noMinute)).toEqual({ admitted: false, limit: "minute", retryAfterMs: windowMs });
      expect(await enter(n, { perMinute: 10, parallel: 0 })).toMatchObject({ admitted: false, limit: "parallel" });
    }
  });

  test("admits exactly as many of 500 simultaneous requests as the parallel limit allows [B4]", async () => {
    const limits = { perMinute: 1_000, parallel: 10 };
    const decisions = await Promise.all(Array.from({ length: 500 }, (_, n) => enter(n, limits)));
    expect(decisions.filter((decision) => decision.admitted).length).toBe(10);
    const refused = decisions.find((decision) => !decision.admitted);
    expect(refused).toMatchObject({ admitted: false, limit: "parallel" });
  });

  /** Sends `count` requests and returns their retry times in seconds, in ascending order. */
  async function told(count: number, limits: AccountLimits, from = 100): Promise<number[]> {
    const decisions = await Promise.all(Array.from({ length: count }, (_, n) => enter(from + n, limits)));
    return decisions
      .map((decision) => (decision.admitted ? 0 : decision.retryAfterMs / 1_000))
      .toSorted((a, b) => a - b);
  }

  test("gives requests refused by the minute only as many equal retry times as there is room", async () => {
    const limits = { perMinute: 4, parallel: 100 };
    for (const n of [0, 1]) await enter(n, limits);
    await rig.advance(20_000);
    for (const n of [2, 3]) await enter(n, limits);
    expect(await told(4, limits)).toEqual([40, 40, 60, 60]);
    // The minute of the announced requests is full, too.
    expect(await told(3, limits, 200)).toEqual([60, 60, 60]);
    await rig.advance(40_000);
    expect([(await enter(100, limits)).admitted, (await enter(101, limits)).admitted]).toEqual([true, true]);
    expect(await told(1, limits, 300)).toEqual([60]);
  });

  test("estimates the retry times of requests refused by running answers from the durations of answers [S19.2]", async () => {
    const first = { perMinute: 1_000, parallel: 9 };
    for (let n = 0; n < 9; n++) await enter(n, first);
    // The limiter knows no durations yet.
    expect(await told(10, first)).toEqual([...Array<number>(9).fill(7), 14]);
    await rig.advance(20_000);
    for (let n = 0; n < 9; n++) await leave(n);
    const limits = { perMinute: 1_000, parallel: 3 };
    for (const n of [9, 10, 11]) await enter(n, limits);
    await rig.advance(5_000);
    expect(await told(7, limits, 200)).toEqual([15, 15, 15, 35, 35, 35, 55]);
  });

  test("expects an answer that runs longer than all others to run much longer", async () => {
    const limits = { perMinute: 1_000, parallel: 1 };
    await enter(0, limits);
    await rig.advance(5_000);
    const [seconds] = await told(1, limits);
    expect(seconds).toBeGreaterThanOrEqual(45);
    expect(seconds).toBeLessThan(60);
    await rig.advance(5_000);
    expect(await told(1, limits, 200)).toEqual([60]);
  });

  test("gives a request that comes back and is refused again a later time [S19.2]", async () => {
    const limits = { perMinute: 1_000, parallel: 3 };
    for (const n of [0, 1, 2]) await enter(n, limits);
    expect(await told(6, limits)).toEqual([7, 7, 7, 14, 14, 14]);
    await rig.advance(15_000);
    for (const n of [0, 1]) {
      await leave(n);
      expect((await enter(n + 3, limits)).admitted).toBe(true);
    }
    // The two new answers alone may take 7 s.
    expect(await told(1, limits, 200)).toEqual([14]);
  });

  test("gives a request that its client repeats a later time, whatever refused it before [S19.2]", async () => {
    const limits = { perMinute: 1_000, parallel: 1 };
    await enter(0, limits);
    const [limiter] = rig.limiters;
    expect(await limiter!.enter(account, request(1), limits, true)).toMatchObject({ retryAfterMs: 14_000 });
  });

  test("includes the minute in the retry time of a refusal by the parallel limit, so that one retry is enough [S19.2]", async () => {
    const limits = { perMinute: 2, parallel: 1 };
    await enter(0, limits);
    await rig.advance(5_000);
    // By the parallel limit alone, the second request would be admitted a little after the first.
    expect((await told(3, limits)).slice(1)).toEqual([55, 60]);
  });

  test("forgets requests that do not come back and gives their times to later refused requests [S19.2]", async () => {
    const limits = { perMinute: 2, parallel: 100 };
    for (const n of [0, 1]) await enter(n, limits);
    expect(await told(2, limits)).toEqual([60, 60]);
    await rig.advance(65_000);
    for (const n of [2, 3]) expect((await enter(n, limits)).admitted).toBe(true);
    await rig.advance(30_000);
    expect(await told(2, limits, 200)).toEqual([30, 30]);
  });

  test("admits exactly as many of 500 simultaneous requests as the minute allows [B4]", async () => {
    const limits = { perMinute: 60, parallel: 1_000 };
    const decisions = await Promise.all(Array.from({ length: 500 }, (_, n) => enter(n, limits)));
    expect(decisions.filter((decision) => decision.admitted).length).toBe(60);
    const refused = decisions.filter((decision) => !decision.admitted);
    expect(refused.filter(({ limit }) => limit !== "minute")).toEqual([]);
  });

  test("counts a burst across the boundary of a minute as one [B4 S19.1]", async () => {
    const limits = { perMinute: 30, parallel: 1_000 };
    await rig.advance(55_000);
    let admitted = 0;
    for (let n = 0; n < 60; n++) {
      if (n === 30) await rig.advance(10_000);
      if ((await enter(n, limits)).admitted) admitted++;
    }
    expect(admitted).toBe(30);
  });

  test("admits a refused request after its retry time and not earlier", async () => {
    const limits = { perMinute: 2, parallel: 10 };
    await enter(1, limits);
    await rig.advance(10_000);
    await enter(2, limits);
    await rig.advance(5_000);
    const refused = await enter(3, limits);
    expect(refused).toMatchObject({ admitted: false, limit: "minute" });
    const { retryAfterMs } = refused as { retryAfterMs: number };
    // The store's real clock has moved on, so the time is a little less than 45 s.
    expect(retryAfterMs).toBeGreaterThan(40_000);
    expect(retryAfterMs).toBeLessThanOrEqual(45_000);
    await rig.advance(40_000);
    expect((await enter(3, limits)).admitted).toBe(false);
    await rig.advance(5_000);
    expect((await enter(3, limits)).admitted).toBe(true);
  });

  test("does not count a request refused by the parallel limit in the minute [B4 S19.4]", async () => {
    const limits = { perMinute: 2, parallel: 1 };
    await enter(1, limits);
    for (let n = 10; n < 30; n++) expect((await enter(n, limits)).admitted).toBe(false);
    await leave(1);
    expect((await enter(2, limits)).admitted).toBe(true);
    expect(await use()).toEqual(rig.limiters.map(() => ({ lastMinute: 2, parallel: 1 })));
  });

  test("gives no place to a request refused by the minute [B4 S19.4]", async () => {
    const limits = { perMinute: 1, parallel: 2 };
    await enter(1, limits);
    await enter(2, limits);
    await rig.advance(windowMs);
    expect((await enter(3, limits)).admitted).toBe(true);
  });

  test("frees no second place if a request leaves twice or has not entered", async () => {
    const limits = { perMinute: 100, parallel: 1 };
    await enter(1, limits);
    for (const n of [1, 1, 9]) await leave(n);
    expect((await enter(2, limits)).admitted).toBe(true);
    expect((await enter(3, limits)).admitted).toBe(false);
  });

  test("admits a request that already holds a place again without counting it", async () => {
    const limits = { perMinute: 1, parallel: 1 };
    await enter(1, limits);
    expect((await enter(1, limits)).admitted).toBe(true);
    expect((await use())[0]).toEqual({ lastMinute: 1, parallel: 1 });
  });

  test("refuses after a limit is lowered until the earlier requests fit into it", async () => {
    for (let n = 0; n < 4; n++) {
      await enter(n, { perMinute: 10, parallel: 10 });
      await rig.advance(10_000);
    }
    expect(await enter(9, { perMinute: 2, parallel: 10 })).toMatchObject({ admitted: false, limit: "minute" });
    await rig.advance(35_000);
    expect((await enter(9, { perMinute: 2, parallel: 10 })).admitted).toBe(false);
    await rig.advance(5_000);
    expect((await enter(9, { perMinute: 2, parallel: 10 })).admitted).toBe(true);
  });

  test("applies a raised limit at once", async () => {
    await enter(1, { perMinute: 1, parallel: 1 });
    expect((await enter(2, { perMinute: 1, parallel: 1 })).admitted).toBe(false);
    expect((await enter(2, { perMinute: 2, parallel: 2 })).admitted).toBe(true);
  });

  test("counts each account separately", async () => {
    const limits = { perMinute: 1, parallel: 1 };
    for (const name of ["b", "c"]) expect((await enter(1, limits, asId<AccountId>(name))).admitted).toBe(true);
    for (const name of ["b", "c"]) expect((await enter(2, limits, asId<AccountId>(name))).admitted).toBe(false);
  });

  test("keeps a place while its request runs", async () => {
    const limits = { perMinute: 100, parallel: 3 };
    for (const n of [1, 2, 3]) await enter(n, limits);
    await rig.advance(300_000);
    expect(await enter(4, limits)).toMatchObject({ admitted: false, limit: "parallel" });
    expect((await use())[0]).toEqual({ lastMinute: 0, parallel: 3 });
  });

  test("keeps both limits in every minute and at every moment for any order of requests [B4 S19.1]", async () => {
    const step = fc.record({ fives: fc.nat(4), enter: fc.boolean(), which: fc.nat(7) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 4 }),
        async (steps, perMinute, parallel) => {
          await rig[Symbol.asyncDispose]();
          rig = await open();
          const times: number[] = [];
          const live = new Set<number>();
          let nowMs = 0;
          for (const [made, { fives, enter: enters, which }] of steps.entries()) {
            await rig.advance(fives * 5_000);
            nowMs += fives * 5_000;
            if (!enters) {
              const gone = [...live][which % Math.max(1, live.size)] ?? -1;
              live.delete(gone);
              await leave(Math.max(0, gone));
              continue;
            }
            const lastMinute = times.filter((at) => at > nowMs - windowMs).length;
            expect(await use()).toEqual(rig.limiters.map(() => ({ lastMinute, parallel: live.size })));
            const decision = await enter(made, { perMinute, parallel });
            const reached = [lastMinute >= perMinute && "minute", live.size >= parallel && "parallel"];
            expect(decision.admitted).toBe(!reached.some(Boolean));
            expect([...reached, undefined]).toContain(decision.admitted ? undefined : decision.limit);
            if (decision.admitted) {
              times.push(nowMs);
              live.add(made);
            }
          }
        },
      ),
      { numRuns: runs },
    );
  });
}
