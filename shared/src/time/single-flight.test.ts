import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sleep } from "./clock.ts";
import { SingleFlight } from "./single-flight.ts";
import { settle, VirtualClock } from "../testing/virtual-clock.ts";

const pauseMs = 500;

interface Run {
  readonly beganAtMs: number;
  endedAtMs?: number;
  failed?: boolean;
}

/** Opens work whose runs take the planned times and results, in order. Runs after the plan succeed at once. */
function open(plan: readonly { readonly ms: number; readonly fails?: boolean }[] = []) {
  const clock = new VirtualClock();
  const runs: Run[] = [];
  let going = 0;
  const work = new SingleFlight(
    clock,
    async () => {
      const { ms, fails = false } = plan[runs.length] ?? { ms: 0 };
      const run: Run = { beganAtMs: clock.now() };
      runs.push(run);
      expect(++going).toBe(1);
      if (ms > 0) await sleep(clock, ms);
      going--;
      Object.assign(run, { endedAtMs: clock.now(), failed: fails });
      if (fails) throw new Error("failed");
    },
    pauseMs,
  );
  const startMs = clock.now();
  return { clock, work, runs, begun: () => runs.map(({ beganAtMs }) => beganAtMs - startMs) };
}

describe("a wish", () => {
  test("causes one run at its time, or at the earliest time of several wishes", async () => {
    const { clock, work, begun } = open();
    work.wish(200);
    work.wish(20);
    work.wish(50);
    await clock.advanceAsync(1_000);
    work.wish();
    await clock.advanceAsync(1_000);
    expect(begun()).toEqual([20, 1_000]);
    expect(clock.pending).toBe(0);
  });

  test("that is made or falls due during a run causes one more run", async () => {
    const { clock, work, begun } = open([{ ms: 100 }]);
    work.wish();
    await clock.advanceAsync(10);
    work.wish(20);
    work.wish(30);
    await clock.advanceAsync(1_000);
    expect(begun()).toEqual([0, 100]);
  });

  test.each([0, 1, 2, 3, 4, 5, 6])(
    "that is made %d microtasks after the end of the work causes one more run",
    async (turns) => {
      const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let runs = 0;
      const work = new SingleFlight(new VirtualClock(), () => ends[runs++]!.promise, pauseMs);
      work.wish();
      await settle();
      ends[0]!.resolve();
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      work.wish();
      await settle();
      expect(runs).toBe(2);
    },
  );

  test("for a time after the end of the current run causes a run at that time", async () => {
    const { clock, work, begun } = open([{ ms: 100 }]);
    work.wish();
    work.wish(300);
    await clock.advanceAsync(1_000);
    expect(begun()).toEqual([0, 300]);
  });

  test("that the work itself makes counts like any other wish", async () => {
    const clock = new VirtualClock();
    let runs = 0;
    const work: SingleFlight = new SingleFlight(
      clock,
      async () => {
        if (++runs < 5) work.wish(runs % 2 === 0 ? 0 : 1_000);
      },
      pauseMs,
    );
    work.wish();
    await clock.advanceAsync(10_000);
    expect(runs).toBe(5);
  });
});

describe("work that fails", () => {
  test("is repeated after the pause and not before, even if more wishes come", async () => {
    const { clock, work, begun } = open([{ ms: 0, fails: true }, { ms: 10, fails: true }, { ms: 0 }]);
    work.wish();
    await clock.advanceAsync(100);
    work.wish();
    await clock.advanceAsync(10_000);
    expect(begun()).toEqual([0, 500, 1_010]);
  });

  test("by throwing synchronously does not prevent the next run", async () => {
    const clock = new VirtualClock();
    let runs = 0;
    const fail = () => {
      if (++runs < 3) throw new Error("at once");
      return Promise.resolve();
    };
    const work = new SingleFlight(clock, fail, 0);
    work.wish();
    await clock.advanceAsync(0);
    expect(runs).toBe(3);
  });
});

test("a cancelled wish causes no run, a cancelled run is not repeated, and later wishes cause runs", async () => {
  const { clock, work, begun } = open([{ ms: 100, fails: true }]);
  work.wish();
  work.wish(200);
  await clock.advanceAsync(10);
  work.cancel();
  await clock.advanceAsync(10_000);
  expect(begun()).toEqual([0]);
  expect(clock.pending).toBe(0);
  work.wish(5);
  await clock.advanceAsync(10);
  expect(begun()).toEqual([0, 10_015]);
});

test("closing waits for the current run and prevents further runs", async () => {
  const { clock, work, runs } = open([{ ms: 100, fails: true }]);
  work.wish();
  work.wish(50);
  let closed = false;
  void work[Symbol.asyncDispose]().then(() => (closed = true));
  await clock.advanceAsync(99);
  expect(closed).toBe(false);
  await clock.advanceAsync(1);
  work.wish();
  await clock.advanceAsync(10_000);
  expect([closed, runs.length, clock.pending]).toEqual([true, 1, 0]);
});

test("in any order of events, a run follows each wish at its time or after the current run and pause [A7]", async () => {
  const ms = fc.integer({ min: 0, max: 300 });
  const plan = fc.array(fc.record({ ms, fails: fc.boolean() }), { maxLength: 20 });
  const wishes = fc.array(fc.record({ afterMs: ms, delayMs: ms }), { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(plan, wishes, async (planned, wished) => {
      const { clock, work, runs } = open(planned);
      const made: { readonly dueMs: number; readonly runsBefore: number }[] = [];
      for (const { afterMs, delayMs } of wished) {
        await clock.advanceAsync(afterMs);
        made.push({ dueMs: clock.now() + delayMs, runsBefore: runs.length });
        work.wish(delayMs);
      }
      await clock.advanceAsync((300 + pauseMs) * (planned.length + 1));
      for (const { dueMs, runsBefore } of made) {
        const present = runs[runsBefore - 1];
        const freeAtMs = present ? present.endedAtMs! + (present.failed ? pauseMs : 0) : -Infinity;
        expect(runs[runsBefore]!.beganAtMs).toBeLessThanOrEqual(Math.max(dueMs, freeAtMs));
      }
      const failures = runs.filter(({ failed }) => failed).length;
      expect(runs.length).toBeLessThanOrEqual(wished.length + failures);
      expect(runs.at(-1)!.failed).toBe(false);
      expect(clock.pending).toBe(0);
    }),
  );
});
