import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { Readiness } from "./readiness.ts";

const nodes = Array.from({ length: 20 }, (_, index) => `gpu-${index}`);

/** `now` contains the current state, which the test changes. */
function starting(seen: readonly string[] = nodes) {
  const clock = new VirtualClock();
  const now = { reached: [] as readonly string[], othersHaveNodes: false };
  const parts = { reached: () => now.reached, othersHaveNodes: () => now.othersHaveNodes };
  return { clock, now, readiness: new Readiness({ seen: new Set(seen), ...parts, clock }) };
}

test("a router is ready at once if no node was linked before it started", () => {
  expect(starting([]).readiness.isReady()).toBe(true);
});

test("a router is ready once it reaches nine tenths of the earlier nodes, and stays ready without them [R2]", () => {
  const { now, readiness } = starting();
  now.reached = [...nodes.slice(0, 17), "gpu-98", "gpu-99"];
  expect(readiness.isReady()).toBe(false);
  now.reached = nodes.slice(0, 18);
  expect(readiness.isReady()).toBe(true);
  Object.assign(now, { reached: [], othersHaveNodes: true });
  expect(readiness.isReady()).toBe(true);
});

test("a router waits at most 15 s for the earlier nodes [R2]", () => {
  const { clock, readiness } = starting();
  clock.advance(14_999);
  expect(readiness.isReady()).toBe(false);
  clock.advance(1);
  expect(readiness.isReady()).toBe(true);
});

test.each([
  ["nodes were linked before it started", nodes],
  ["no node was linked before it started", []],
])("a router without a node is not ready while another router has one, even after 15 s: %s [R2]", (_when, seen) => {
  const { clock, now, readiness } = starting(seen);
  now.othersHaveNodes = true;
  expect(readiness.isReady()).toBe(false);
  clock.advance(600_000);
  expect(readiness.isReady()).toBe(false);
  now.reached = ["gpu-1"];
  expect(readiness.isReady()).toBe(true);
});

test("a router without a node is ready after 15 s once no other router has a node", () => {
  const { clock, now, readiness } = starting();
  now.othersHaveNodes = true;
  clock.advance(20_000);
  expect(readiness.isReady()).toBe(false);
  now.othersHaveNodes = false;
  expect(readiness.isReady()).toBe(true);
});
