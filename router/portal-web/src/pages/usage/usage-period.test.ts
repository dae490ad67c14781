import { expect, test } from "vitest";
import { daysBetween, usageDays } from "./usage-period.ts";

const of = (parts: Record<string, string>) => usageDays((name) => parts[name], "2026-11-21");

test.each([
  [{}, { choice: "period" }],
  [{ days: "7" }, { choice: "7", from: "2026-11-15", to: "2026-11-21" }],
  [{ days: "1e9" }, { choice: "period" }],
  [{ from: "2026-11-01" }, { choice: "own", from: "2026-11-01", to: "2026-11-21" }],
  [
    { from: "2026-11-20", to: "2026-11-02" },
    { choice: "own", from: "2026-11-02", to: "2026-11-20" },
  ],
  [{ from: "2026-02-30" }, { choice: "period" }],
])("an address with %j shows %j", (parts, days) => expect(of(parts as Record<string, string>)).toEqual(days));

test("the days between two are complete, also over a clock change, and limited in number", () => {
  expect(daysBetween("2026-10-24", "2026-10-26")).toEqual(["2026-10-24", "2026-10-25", "2026-10-26"]);
  expect(daysBetween("2000-01-01", "2026-01-01", 3)).toHaveLength(3);
});
