import { VirtualClock } from "../testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { Patience } from "./patience.ts";

/**
 * Returns when a reader that takes `bytes` every `everyMs` is given up. Infinite if it is not given up within an hour.
 */
function givenUpAfterMs(bytes: number, everyMs: number): number {
  const clock = new VirtualClock();
  const startMs = clock.monotonicMs();
  let atMs = Infinity;
  const patience = new Patience({
    ...{ clock, msMax: 60_000, floorBytesPerSecond: 1_024 },
    giveUp: () => (atMs = clock.monotonicMs() - startMs),
  });
  patience.start();
  while (atMs === Infinity && clock.monotonicMs() - startMs < 3_600_000) {
    clock.advance(everyMs);
    patience.took(bytes);
  }
  return atMs;
}

test.each([
  ["nothing", 0, 1_000, 60_000],
  ["a byte a second", 1, 1_000, 60_059],
  ["half of the floor", 512, 1_000, 120_000],
  ["three quarters of the floor", 768, 1_000, 240_000],
  ["the floor", 1_024, 1_000, Infinity],
  ["the floor in lumps of 50 s", 50 * 1_024, 50_000, Infinity],
  ["more than the floor in lumps that come too late", 200_000, 70_000, 60_000],
])("a reader that takes %s is given up at the right time [D3]", (_what, bytes, everyMs, expected) => {
  const atMs = givenUpAfterMs(bytes, everyMs);
  expect(atMs === expected || Math.abs(atMs - expected) <= 4_000).toBe(true);
});

test("time does not run while nothing waits, and fast reading earns no extra time for later [D3]", () => {
  const clock = new VirtualClock();
  let isGivenUp = false;
  const giveUp = () => (isGivenUp = true);
  const patience = new Patience({ clock, msMax: 60_000, floorBytesPerSecond: 1_024, giveUp });
  for (let n = 0; n < 10; n++) {
    patience.start();
    clock.advance(5_000);
    patience.stop();
    clock.advance(600_000);
  }
  expect(clock.pending).toBe(0);
  patience.took(100 << 20);
  patience.start();
  clock.advance(59_999);
  expect(isGivenUp).toBe(false);
  clock.advance(1);
  expect(isGivenUp).toBe(true);
});
