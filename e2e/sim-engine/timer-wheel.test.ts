import { expect, it } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { TimerWheel, type Job } from "./timer-wheel.ts";

it("calls each job at its time, in order, with one timer for all of them", () => {
  const clock = new VirtualClock();
  const wheel = new TimerWheel(clock);
  const random = createRandom(1);
  const startMs = wheel.nowMs;
  const late: number[] = [];
  const called: number[] = [];
  for (let index = 0; index < 2_000; index++) {
    const atMs = startMs + random.below(5_000) + random.next();
    wheel.add(atMs, { due: (nowMs) => (late.push(nowMs - atMs), called.push(atMs)) });
  }
  expect(clock.pending).toBe(1);
  clock.advance(6_000);
  expect(called).toHaveLength(2_000);
  expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...late)).toBeLessThan(1);
  expect(called.map(Math.ceil)).toEqual(called.map(Math.ceil).toSorted((a, b) => a - b));
  expect(clock.pending).toBe(0);
});

it("takes jobs that add themselves again while it runs, also for a time that has passed", () => {
  const clock = new VirtualClock();
  const wheel = new TimerWheel(clock);
  let calls = 0;
  const job: Job = {
    due: (nowMs) => {
      if (++calls < 5) wheel.add(nowMs - 10, job);
    },
  };
  wheel.add(wheel.nowMs + 20, job);
  clock.advance(30);
  expect(calls).toBe(5);
});
