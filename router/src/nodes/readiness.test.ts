import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { Readiness } from "./readiness.ts";

const nodes = Array.from({ length: 20 }, (_, index) => `gpu-${index}`);

/** `now`: what holds at this moment; the test changes it. */
function starting(seen: readonly string[] = nodes) {
  const clock = new VirtualClock();
  const now = { reached: [] as readonly string[], othersHaveNodes: false };
  const parts = { reached: () => now.reached, othersHaveNodes: () => now.othersHaveNodes };
  return { clock, now, readiness: new Readiness({ seen: new Set(seen), ...parts, clock }) };
}

test("a router that was alone is ready at once", () => {
  expect(starting([]).readiness.isReady()).toBe(true);
});

test("a router is ready with nine tenths of the nodes that were there, and stays so without them", () => {
  const { now, readiness } = starting();
  now.reached = [...nodes.slice(0, 17), "gpu-98", "gpu-99"];
  expect(readiness.isReady()).toBe(false);
  now.reached = nodes.slice(0, 18);
  expect(readiness.isReady()).toBe(true);
  Object.assign(now, { reached: [], othersHaveNodes: true });
  expect(readiness.isReady()).toBe(true);
});

test("it waits 15 s for them, and no longer", () => {
  const { clock, readiness } = starting();
  clock.advance(14_999);
  expect(readiness.isReady()).toBe(false);
  clock.advance(1);
  expect(readiness.isReady()).toBe(true);
});

test.each([
  ["nodes were there before it", nodes],
  ["no node was there before it", []],
])("without a node it is not ready while another router has one, though it has waited: %s", (_when, seen) => {
  const { clock, now, readiness } = starting(seen);
  now.othersHaveNodes = true;
  expect(readiness.isReady()).toBe(false);
  clock.advance(600_000);
  expect(readiness.isReady()).toBe(false);
  now.reached = ["gpu-1"];
  expect(readiness.isReady()).toBe(true);
});

test("without a node it is ready after 15 s once no other router has one any more", () => {
  const { clock, now, readiness } = starting();
  now.othersHaveNodes = true;
  clock.advance(20_000);
  expect(readiness.isReady()).toBe(false);
  now.othersHaveNodes = false;
  expect(readiness.isReady()).toBe(true);
});
