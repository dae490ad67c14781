import { expect, test } from "vitest";
import { elementsPerSecond, messageElements, Pace } from "./link-pace.ts";

test("a call that was quiet sends one second of work at once, and then waits for its rate", () => {
  const pace = new Pace();
  const each = 1_000 - messageElements;
  const atOnce = elementsPerSecond / 1_000;
  const waits = Array.from({ length: atOnce + 3 }, () => pace.takeMs(each, 5_000));
  expect(waits.slice(0, atOnce + 1).every((ms) => ms === 0)).toBe(true);
  expect(waits.slice(atOnce + 1).map(Math.round)).toEqual([3, 7]);
});

test("a call never gets more work done than its rate and one message [D10]", () => {
  const pace = new Pace();
  let [nowMs, taken] = [0, 0];
  while (nowMs < 60_000) {
    nowMs += pace.takeMs(100_000, nowMs);
    taken += 100_000;
  }
  expect(taken).toBeLessThanOrEqual(61 * elementsPerSecond + 100_000);
});

test("an agent that reports fifty times a second and sends full batches in sequence never waits", () => {
  const pace = new Pace();
  let waitedMs = 0;
  for (let nowMs = 0; nowMs < 60_000; nowMs += 20) {
    waitedMs += pace.takeMs(200, nowMs);
    if (nowMs % 100 === 0) waitedMs += pace.takeMs(18_000, nowMs);
  }
  expect(waitedMs).toBe(0);
});
