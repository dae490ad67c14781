import { expect, test } from "vitest";
import { lastDays } from "./last-days.ts";

test("each of the last thirty days has its credits, and none without use is left out, also when clocks change", () => {
  const days = lastDays([{ day: "2026-10-25", credits: "2500000.500" }], "2026-11-01");
  expect(days).toHaveLength(30);
  expect([days[0], days.at(-1)]).toEqual([
    { day: "2026-10-03", credits: 0 },
    { day: "2026-11-01", credits: 0 },
  ]);
  expect(days.filter(({ credits }) => credits > 0)).toEqual([{ day: "2026-10-25", credits: 2_500_000.5 }]);
  expect(new Set(days.map(({ day }) => day)).size).toBe(30);
});
