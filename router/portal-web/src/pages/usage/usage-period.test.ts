import { expect, test } from "vitest";
import { usageDays } from "./usage-period.ts";

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
