import { expect, test } from "vitest";
import { addDays, daysBetween, endOfGermanDay, germanDay, isGermanMidnight, lastGermanDay } from "./german-day.ts";

test.each([
  ["2026-01-31", "2026-01-31T23:00:00.000Z"],
  ["2026-07-31", "2026-07-31T22:00:00.000Z"],
  ["2026-03-28", "2026-03-28T23:00:00.000Z"],
  ["2026-03-29", "2026-03-29T22:00:00.000Z"],
  ["2026-10-24", "2026-10-24T22:00:00.000Z"],
  ["2026-10-25", "2026-10-25T23:00:00.000Z"],
])("the German day %s ends at %s, and is the last day before this instant", (day, instant) => {
  expect(endOfGermanDay(day)).toBe(instant);
  expect(lastGermanDay(instant)).toBe(day);
  expect(isGermanMidnight(instant)).toBe(true);
  expect(isGermanMidnight(new Date(Date.parse(instant) + 1).toISOString())).toBe(false);
});

test("days are counted across months and clock changes", () => {
  expect(addDays("2026-03-28", 2)).toBe("2026-03-30");
  expect(addDays("2026-03-01", -1)).toBe("2026-02-28");
  expect(germanDay(Date.parse("2026-11-20T23:30:00Z"))).toBe("2026-11-21");
});

test("the days between two are complete, also over a clock change, and limited in number", () => {
  expect(daysBetween("2026-10-24", "2026-10-26")).toEqual(["2026-10-24", "2026-10-25", "2026-10-26"]);
  expect(daysBetween("2000-01-01", "2026-01-01", 3)).toHaveLength(3);
});
