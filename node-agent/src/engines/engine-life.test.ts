import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { EngineLife } from "./engine-life.ts";

test("output and a counter that moved are signs of life, but not the counter's first or repeated reading", () => {
  const clock = new VirtualClock();
  const life = new EngineLife(clock);
  const endpoint = { origin: "http://127.0.0.1:1" };
  const beganMs = clock.monotonicMs();
  life.measured(endpoint, 100);
  clock.advance(1_000);
  life.measured(endpoint, 100);
  expect(life.lastMs(endpoint)).toBeUndefined();
  life.measured(endpoint, 101);
  expect(life.lastMs(endpoint)).toBe(beganMs + 1_000);
  clock.advance(1_000);
  life.answered(endpoint);
  expect(life.lastMs(endpoint)).toBe(beganMs + 2_000);
});

test("the next engine on the same port begins without signs of life", () => {
  const life = new EngineLife(new VirtualClock());
  const endpoint = { origin: "http://127.0.0.1:1" };
  life.answered(endpoint);
  life.measured(endpoint, 1);
  const next = { ...endpoint };
  life.measured(next, 2);
  expect(life.lastMs(next)).toBeUndefined();
});
