/**
 * Checks days and instants that people write. Refuses dates that the calendar does not have, and years that the database
 * cannot read in this form (before 1 and after 9999, offsets included).
 */

const firstMs = Date.parse("0001-01-01T00:00:00Z");
const endMs = Date.parse("+010000-01-01T00:00:00Z");

/** Returns milliseconds since the epoch; undefined if the text is not a valid instant. */
export function readInstantText(text: string): number | undefined {
  try {
    const { epochMilliseconds } = Temporal.Instant.from(text);
    return firstMs <= epochMilliseconds && epochMilliseconds < endMs ? epochMilliseconds : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether the text is a valid day whose year is in this range in every time zone. */
export function isDay(text: string): boolean {
  try {
    const { year } = Temporal.PlainDate.from(text, { overflow: "reject" });
    return 1 < year && year < 9999;
  } catch {
    return false;
  }
}
