import { expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { mergeBuckets, pairRatios, short, shuffled, spreadOf } from "./statistics.ts";

test("a spread has the median, the minimum and the maximum", () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, rounds: 3 });
  expect(spreadOf([4, 1, 2, 3])).toEqual({ median: 2.5, min: 1, max: 4, rounds: 4 });
  expect(spreadOf([NaN, 7])).toEqual({ median: 7, min: 7, max: 7, rounds: 1 });
  expect(spreadOf([])).toBeUndefined();
});

test("ratios are computed within rounds, not from medians", () => {
  const ours = [10, 20, 40].map((value, at) => ({ round: at + 1, value }));
  const theirs = [40, 20, 10].map((value, at) => ({ round: at + 1, value }));
  expect(pairRatios(ours, theirs)).toEqual({ median: 1, min: 0.25, max: 4, rounds: 3 });
  expect(pairRatios(ours, theirs.slice(0, 1))).toMatchObject({ median: 0.25, rounds: 1 });
  expect(pairRatios(ours, [])).toBeUndefined();
});

test("distributions are added by bucket", () => {
  const merged = mergeBuckets([
    [
      [10, 1],
      [20, 2],
    ],
    [
      [5, 1],
      [20, 6],
    ],
  ]);
  expect(merged).toEqual([
    [5, 1],
    [10, 1],
    [20, 8],
  ]);
});

test.each([
  [0, "0"],
  [0.01234, "0.012"],
  [1.2345, "1.23"],
  [12.345, "12.3"],
  [123.45, "123"],
  [1_234.5, "1,235"],
  [1_234_567, "1,234,567"],
])("%d is written as %s", (value, text) => expect(short(value)).toBe(text));

test("a random order contains every item once and is determined by its seed", () => {
  const orders = [1, 1, 2].map((seed) => {
    const random = createRandom(seed);
    return shuffled([1, 2, 3, 4, 5, 6, 7, 8], () => random.next());
  });
  expect(orders[0]).toEqual(orders[1]);
  expect(orders[0]).not.toEqual(orders[2]);
  expect(orders[2]!.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});
