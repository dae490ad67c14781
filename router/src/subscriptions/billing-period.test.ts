import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { billingPeriodAt, germanDay, timeZone } from "./billing-period.ts";

const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
const textOf = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone).toPlainDateTime().toString();

/** Yields the first periods of an order, each computed from the end of the period before. */
function* periods(orderedMs: number, count: number) {
  let atMs = orderedMs;
  for (let n = 0; n < count; n++) {
    const period = billingPeriodAt(orderedMs, atMs);
    yield period;
    atMs = period.endMs;
  }
}

describe("billing periods", () => {
  test("begin with the order and end at German midnight a month later [S16.10]", () => {
    expect(
      [...periods(berlin("2026-11-14T10:30"), 2)].map(({ startMs, endMs }) => [textOf(startMs), textOf(endMs)]),
    ).toEqual([
      ["2026-11-14T10:30:00", "2026-12-14T00:00:00"],
      ["2026-12-14T00:00:00", "2027-01-14T00:00:00"],
    ]);
  });

  test.each([
    ["2026-01-31T15:00", ["2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"]],
    ["2028-01-30T00:00", ["2028-02-29", "2028-03-30", "2028-04-30"]],
    ["2027-12-29T23:59:59.999", ["2028-01-29", "2028-02-29", "2028-03-29"]],
    ["2028-02-29T12:00", ["2028-03-29", "2028-04-29"]],
  ])("the periods of an order of %s end on its day or the month's last day", (ordered, ends) => {
    const found = [...periods(berlin(ordered), ends.length)].map(({ endMs }) => textOf(endMs));
    expect(found).toEqual(ends.map((day) => `${day}T00:00:00`));
  });

  test("a period over a clock change is an hour shorter or longer [A3 S16.10]", () => {
    const hours = (ordered: string) => {
      const { startMs, endMs } = billingPeriodAt(berlin(ordered), berlin(ordered));
      return (endMs - startMs) / 3_600_000;
    };
    expect(hours("2026-03-15T00:00")).toBe(31 * 24 - 1);
    expect(hours("2026-10-15T00:00")).toBe(31 * 24 + 1);
  });

  test("an instant before the order throws", () => {
    expect(() => billingPeriodAt(1_000, 999)).toThrow(RangeError);
  });

  const instant = fc.integer({ min: berlin("2026-01-01T00:00"), max: berlin("2126-01-01T00:00") });

  test("every instant of 200 years lies in exactly one period [A3 S20.4]", () => {
    fc.assert(
      fc.property(instant, fc.integer({ min: 0, max: 100 * 366 * 86_400_000 }), (orderedMs, laterMs) => {
        const atMs = orderedMs + laterMs;
        const { startMs, endMs } = billingPeriodAt(orderedMs, atMs);
        expect(startMs).toBeLessThanOrEqual(atMs);
        expect(endMs).toBeGreaterThan(atMs);
        // All instants of a period yield this period, and its neighbours follow without gap or overlap.
        expect(billingPeriodAt(orderedMs, startMs)).toEqual({ startMs, endMs });
        expect(billingPeriodAt(orderedMs, endMs - 1)).toEqual({ startMs, endMs });
        expect(billingPeriodAt(orderedMs, endMs).startMs).toBe(endMs);
        const before = Math.max(orderedMs, startMs - 1);
        expect(billingPeriodAt(orderedMs, before).endMs).toBe(startMs > orderedMs ? startMs : endMs);
      }),
      { numRuns: 500 },
    );
  });

  test("1,200 periods follow without gap and end at midnight on the order's day or the month's last day [A3 S16.10]", () => {
    fc.assert(
      fc.property(fc.integer({ min: 28, max: 31 }), fc.integer({ min: 0, max: 86_399_999 }), (day, ofDayMs) => {
        const orderedMs = berlin(`2026-01-${day}T00:00`) + ofDayMs;
        let previousEndMs = orderedMs;
        for (const { startMs, endMs } of periods(orderedMs, 1_200)) {
          expect(startMs).toBe(previousEndMs);
          const end = Temporal.Instant.fromEpochMilliseconds(endMs).toZonedDateTimeISO(timeZone);
          expect(end.toPlainTime().toString()).toBe("00:00:00");
          expect(end.day).toBe(Math.min(day, end.daysInMonth));
          previousEndMs = endMs;
        }
      }),
      { numRuns: 8 },
    );
  });
});

test("a German day begins at German midnight", () => {
  expect(germanDay(Date.parse("2026-07-01T21:59:59.999Z"))).toBe("2026-07-01");
  expect(germanDay(Date.parse("2026-07-01T22:00:00Z"))).toBe("2026-07-02");
  expect(germanDay(Date.parse("2026-12-31T23:00:00Z"))).toBe("2027-01-01");
});
