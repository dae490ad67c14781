/**
 * Computes billing periods from the instant of the order. Pure. The first period begins with the order. Each ends at German
 * midnight on the order's day of the month, one month after the period before (31 January → 28 February → 31 March).
 */
export interface BillingPeriod {
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number;
}

export const timeZone = "Europe/Berlin";

/** A cache: the last period found for each order. A calendar computation takes 30 µs, and most records share a period. */
const found = new Map<number, BillingPeriod>();
const foundMax = 10_000;

/** Returns the period that contains `atMs`, of a package ordered at `orderedMs`. */
export function billingPeriodAt(orderedMs: number, atMs: number): BillingPeriod {
  const last = found.get(orderedMs);
  if (last && last.startMs <= atMs && atMs < last.endMs) return last;
  const period = computePeriodAt(orderedMs, atMs);
  if (found.size >= foundMax) found.clear();
  found.set(orderedMs, period);
  return period;
}

function computePeriodAt(orderedMs: number, atMs: number): BillingPeriod {
  if (atMs < orderedMs) throw new RangeError("no billing period begins before the order");
  const ordered = germanDate(orderedMs);
  const day = germanDate(atMs);
  const months = (day.year - ordered.year) * 12 + day.month - ordered.month;
  // The boundary in this calendar month is either still ahead, or the period's start.
  const passed = months > 0 && boundaryMs(ordered, months) <= atMs ? months : Math.max(0, months - 1);
  return {
    startMs: passed === 0 ? orderedMs : boundaryMs(ordered, passed),
    endMs: boundaryMs(ordered, passed + 1),
  };
}

/** Returns the end of a trial that begins at `startMs`: German midnight, `days` days later. */
export function trialEndMs(startMs: number, days: number): number {
  return germanDate(startMs).add({ days }).toZonedDateTime(timeZone).epochMilliseconds;
}

/** Counts German calendar days from the day of `startMs`, inclusive, to the day of `endMs`, exclusive. */
export function germanDaysBetween(startMs: number, endMs: number): number {
  return germanDate(startMs).until(germanDate(endMs), { largestUnit: "days" }).days;
}

/** Returns the German day of an instant, such as `2026-11-21`. */
export function germanDay(atMs: number): string {
  return germanDate(atMs).toString();
}

/** Returns the German midnight with which the day begins that is `more` days after `day`. */
export function startOfGermanDay(day: string, more = 0): number {
  return Temporal.PlainDate.from(day).add({ days: more }).toZonedDateTime(timeZone).epochMilliseconds;
}

function germanDate(atMs: number): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone).toPlainDate();
}

/** Returns German midnight `months` after the order's day, or on the last day of a shorter month. */
function boundaryMs(ordered: Temporal.PlainDate, months: number): number {
  return ordered.add({ months }, { overflow: "constrain" }).toZonedDateTime(timeZone).epochMilliseconds;
}
