/**
 * Days and instants as people write them. What the calendar does not have is none, and what the database cannot hold as
 * it is written (years before 1 and after 9999, also by an offset) neither.
 */

const firstMs = Date.parse("0001-01-01T00:00:00Z");
const endMs = Date.parse("+010000-01-01T00:00:00Z");

/** Milliseconds since the epoch. */
export function readInstantText(text: string): number | undefined {
  try {
    const { epochMilliseconds } = Temporal.Instant.from(text);
    return firstMs <= epochMilliseconds && epochMilliseconds < endMs ? epochMilliseconds : undefined;
  } catch {
    return undefined;
  }
}

/** Its beginning and end in any time zone lie in those years, too. */
export function isDay(text: string): boolean {
  try {
    const { year } = Temporal.PlainDate.from(text, { overflow: "reject" });
    return 1 < year && year < 9999;
  } catch {
    return false;
  }
}
