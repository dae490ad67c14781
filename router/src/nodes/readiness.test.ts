import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { Readiness } from "./readiness.ts";

const nodes = Array.from({ length: 20 }, (_, index) => `gpu-${index}`);
const seen = new Set(nodes);

test("a router that was alone is ready at once", () => {
  expect(new Readiness(new Set(), new VirtualClock()).isReady(() => [])).toBe(true);
});

test("a router is ready with nine tenths of the nodes that were there, and stays so without them", () => {
  const readiness = new Readiness(seen, new VirtualClock());
  const strangers = ["gpu-98", "gpu-99"];
  expect(readiness.isReady(() => [...nodes.slice(0, 17), ...strangers])).toBe(false);
  expect(readiness.isReady(() => nodes.slice(0, 18))).toBe(true);
  expect(readiness.isReady(() => [])).toBe(true);
});

test("it waits 15 s for them, and no longer", () => {
  const clock = new VirtualClock();
  const readiness = new Readiness(seen, clock);
  clock.advance(14_999);
  expect(readiness.isReady(() => [])).toBe(false);
  clock.advance(1);
  expect(readiness.isReady(() => [])).toBe(true);
});
