/** How long running requests last, by how long others lasted. */
import { expect, test } from "vitest";
import { heldFor, lastEndMs, type HeldTimes } from "./held-times.ts";

const seen = (...seconds: readonly number[]) =>
  seconds.reduce<HeldTimes | undefined>((before, each) => heldFor(before, each * 1_000), undefined)!;
const short = Array.from({ length: 30 }, () => 2);
const mixed = seen(...short, ...Array.from({ length: 30 }, () => 40));

test("a request that has run for longer than the short ones lasts as the long ones do", () => {
  expect(lastEndMs(mixed, [10_000])).toBeGreaterThan(25_000);
  expect(lastEndMs(mixed, [10_000])).toBeLessThan(31_000);
  expect(lastEndMs(seen(...short), [1_000]), "all of them were short").toBeLessThan(1_500);
});

test("the last of many lasts longer than one", () => {
  const ages = (count: number) => Array.from({ length: count }, () => 0);
  const times = seen(...Array.from({ length: 60 }, (_, index) => 1 + index));
  const one = lastEndMs(times, ages(1));
  expect(one / 1_000, "half of 1 to 60 s").toBeCloseTo(30, -1);
  expect(lastEndMs(times, ages(8))).toBeGreaterThan(1.5 * one);
});

test("nothing that runs lasts for no time, and beyond all that was seen a request lasts on as the average does", () => {
  expect(lastEndMs(mixed, [])).toBe(0);
  const long = lastEndMs(mixed, [1e9]);
  expect(long).toBeGreaterThan(0);
  expect(long).toBeLessThan(mixed.meanMs);
});

test("what was seen too seldom counts as its average", () => {
  expect(lastEndMs(seen(4, 4, 4), [1_000, 3_000])).toBe(4_000);
});

test("times are forgotten once 64 younger ones were seen", () => {
  const later = short.concat(short, short).reduce((before, each) => heldFor(before, each * 1_000), mixed);
  expect(later.recentMs).toHaveLength(64);
  expect(lastEndMs(later, [1_000])).toBeLessThan(1_500);
});
