import { afterEach, beforeEach, expect, test } from "vitest";
import { forgivenMsMax, LoopClock } from "./loop-clock.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";

let real: VirtualClock;
let clock: LoopClock;
let fired: number;
beforeEach(() => {
  real = new VirtualClock();
  clock = new LoopClock(real);
  fired = 0;
});
afterEach(() => clock[Symbol.dispose]());

const stalls = [3_000, 5_000, 8_000];
const ordinaryMs = 200;

test("while the event loop is not blocked, the clock equals the clock that it was made from", () => {
  const beganMs = clock.monotonicMs();
  clock.after(3_000, () => fired++);
  for (let turns = 0; turns < 29; turns++) real.advance(100);
  expect([fired, clock.monotonicMs() - beganMs]).toEqual([0, 2_900]);
  real.advance(100);
  expect([fired, clock.now()]).toEqual([1, real.now()]);
});

test.each(stalls)(
  "the clock stops while the event loop is blocked for %s ms, both before the next turn and after it",
  (ms) => {
    const beganMs = clock.monotonicMs();
    real.stall(ms);
    expect(clock.monotonicMs() - beganMs).toBe(ordinaryMs);
    real.advance(0);
    expect(clock.monotonicMs() - beganMs).toBe(ordinaryMs);
    real.advance(1_000);
    expect(clock.monotonicMs() - beganMs).toBe(ordinaryMs + 1_000);
  },
);

test.each(stalls)("a timer that falls due while the event loop is blocked for %s ms waits that much longer", (ms) => {
  clock.after(3_000, () => fired++);
  real.advance(1_000);
  real.stall(ms);
  real.advance(2_000 - ordinaryMs - 1);
  expect(fired).toBe(0);
  real.advance(1);
  expect(fired).toBe(1);
});

test("a loop that is late repeatedly delays a timer by at most 10 s in total", () => {
  clock.after(3_000, () => fired++);
  let passedMs = 0;
  for (; fired === 0; passedMs += 1_500) {
    real.stall(1_500);
    real.advance(0);
  }
  expect(passedMs).toBeGreaterThanOrEqual(3_000 + forgivenMsMax);
  expect(passedMs).toBeLessThan(3_000 + forgivenMsMax + 1_500);
});

test("a timer that is cancelled during its extra wait does not fire", () => {
  const timer = clock.after(1_000, () => fired++);
  real.stall(5_000);
  real.advance(0);
  timer.cancel();
  real.advance(60_000);
  expect([fired, real.pending]).toEqual([0, 1]);
});
