import { expect, test } from "vitest";
import { dayBars } from "./day-bars.ts";

test("a day without requests has an empty bar, and the parts of a bar are stacked", () => {
  const rows = [
    { day: "2026-11-02", series: "a", credits: "10.000" },
    { day: "2026-11-02", series: "b", credits: "30.500" },
  ];
  const { series, bars } = dayBars(rows, ["2026-11-01", "2026-11-02"], "others");
  expect(series).toEqual(["b", "a"]);
  expect(bars.map(({ credits }) => credits)).toEqual([0, 40.5]);
  expect(bars[1]!.parts).toEqual([
    { series: "b", from: 0, to: 30.5 },
    { series: "a", from: 30.5, to: 40.5 },
  ]);
});

test("with more than five models, keys or users, the small ones are combined", () => {
  const rows = ["a", "b", "c", "d", "e", "f"].map((series, index) => ({
    day: "x",
    series,
    credits: String(10 - index),
  }));
  const { series, bars } = dayBars(rows, ["x"], "others");
  expect(series).toEqual(["a", "b", "c", "d", "others"]);
  expect(bars[0]!.credits).toBe(45);
});
