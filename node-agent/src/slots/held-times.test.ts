/** How long running requests are expected to last, learned from earlier requests. */
import { expect, test } from "vitest";
import { heldFor, lastEndMs, type HeldTimes } from "./held-times.ts";

const seen = (...seconds: readonly number[]) =>
  seconds.reduce<HeldTimes | undefined>((before, each) => heldFor(before, each * 1_000), undefined)!;
const short = Array.from({ length: 30 }, () => 2);
const mixed = seen(...short, ...Array.from({ length: 30 }, () => 40));

test("a request that outlasts the short requests is expected to last as the long ones did", () => {
  expect(lastEndMs(mixed, [10_000])).toBeGreaterThan(25_000);
  expect(lastEndMs(mixed, [10_000])).toBeLessThan(31_000);
  expect(lastEndMs(seen(...short), [1_000]), "all recent requests were short").toBeLessThan(1_500);
});

test("the last of several requests is expected to end later than a single one", () => {
  const ages = (count: number) => Array.from({ length: count }, () => 0);
  const times = seen(...Array.from({ length: 60 }, (_, index) => 1 + index));
  const one = lastEndMs(times, ages(1));
  expect(one / 1_000, "half of 1 to 60 s").toBeCloseTo(30, -1);
  expect(lastEndMs(times, ages(8))).toBeGreaterThan(1.5 * one);
});

test("a running request always has time left, and one that outlasts all others is expected to last another average", () => {
  expect(lastEndMs(mixed, [])).toBe(0);
  const long = lastEndMs(mixed, [1e9]);
  expect(long).toBeGreaterThan(0);
  expect(long).toBeLessThan(mixed.meanMs);
});

test("a request lasts for the average time while few times are known", () => {
  expect(lastEndMs(seen(4, 4, 4), [1_000, 3_000])).toBe(4_000);
});

test("a time is forgotten after 64 newer ones", () => {
  const later = short.concat(short, short).reduce((before, each) => heldFor(before, each * 1_000), mixed);
  expect(later.recentMs).toHaveLength(64);
  expect(lastEndMs(later, [1_000])).toBeLessThan(1_500);
});
