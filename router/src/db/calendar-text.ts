/**
 * Checks days and instants that people write. Refused are dates that the calendar does not have, and years that the
 * database cannot take in this form (before 1 and after 9999, also by an offset).
 */

const firstMs = Date.parse("0001-01-01T00:00:00Z");
const endMs = Date.parse("+010000-01-01T00:00:00Z");

/** Milliseconds since the epoch; undefined if it is no valid instant. */
export function readInstantText(text: string): number | undefined {
  try {
    const { epochMilliseconds } = Temporal.Instant.from(text);
    return firstMs <= epochMilliseconds && epochMilliseconds < endMs ? epochMilliseconds : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it is a valid day that lies in those years in any time zone. */
export function isDay(text: string): boolean {
  try {
    const { year } = Temporal.PlainDate.from(text, { overflow: "reject" });
    return 1 < year && year < 9999;
  } catch {
    return false;
  }
}
