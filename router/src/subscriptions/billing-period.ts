/**
 * Billing periods as a pure function of the order's instant. The first begins with the order; each ends at German midnight
 * on the order's day of the month, one month later than the one before (31 January → 28 February → 31 March).
 */
export interface BillingPeriod {
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number;
}

export const timeZone = "Europe/Berlin";

/** The period found last for each instant of an order. Calendars take 30 µs, and most records are of the same periods. */
const found = new Map<number, BillingPeriod>();
const foundMax = 10_000;

/** The period that contains `atMs`, of a package ordered at `orderedMs`. */
export function billingPeriodAt(orderedMs: number, atMs: number): BillingPeriod {
  const last = found.get(orderedMs);
  if (last && last.startMs <= atMs && atMs < last.endMs) return last;
  const period = computePeriodAt(orderedMs, atMs);
  if (found.size >= foundMax) found.clear();
  found.set(orderedMs, period);
  return period;
}

function computePeriodAt(orderedMs: number, atMs: number): BillingPeriod {
  if (atMs < orderedMs) throw new RangeError("before the order there is no billing period");
  const ordered = germanDate(orderedMs);
  const day = germanDate(atMs);
  const months = (day.year - ordered.year) * 12 + day.month - ordered.month;
  // The boundary in this calendar month either lies ahead of `atMs`, or it began the period.
  const passed = months > 0 && boundaryMs(ordered, months) <= atMs ? months : Math.max(0, months - 1);
  return {
    startMs: passed === 0 ? orderedMs : boundaryMs(ordered, passed),
    endMs: boundaryMs(ordered, passed + 1),
  };
}

/** End of a trial that begins at `startMs`: German midnight, `days` days later. */
export function trialEndMs(startMs: number, days: number): number {
  return germanDate(startMs).add({ days }).toZonedDateTime(timeZone).epochMilliseconds;
}

/** Number of German calendar days from that of `startMs`, inclusive, to that of `endMs`, exclusive. */
export function germanDaysBetween(startMs: number, endMs: number): number {
  return germanDate(startMs).until(germanDate(endMs), { largestUnit: "days" }).days;
}

/** The German day of an instant, such as `2026-11-21`. */
export function germanDay(atMs: number): string {
  return germanDate(atMs).toString();
}

function germanDate(atMs: number): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone).toPlainDate();
}

/** German midnight `months` after the order's day, on the last day of a month that is too short. */
function boundaryMs(ordered: Temporal.PlainDate, months: number): number {
  return ordered.add({ months }, { overflow: "constrain" }).toZonedDateTime(timeZone).epochMilliseconds;
}
