/** German days as people choose them, and the instants that the API takes. Pure. */
const berlin = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", timeZoneName: "longOffset" });
const parts = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin", dateStyle: "short" });

/** The German day at this instant, such as 2026-11-21. */
export function germanDay(ms: number): string {
  return parts.format(ms);
}

/** The instant at which the day is over. */
export function endOfGermanDay(day: string): string {
  const nextMidnightUtc = Date.parse(`${day}T00:00:00Z`) + 86_400_000;
  // The offset that holds at that midnight: clocks change at 1:00 UTC, never around midnight.
  return new Date(nextMidnightUtc - offsetMs(nextMidnightUtc)).toISOString();
}

/** The last day that is wholly before this instant, or has it as its end. */
export function lastGermanDay(instant: string): string {
  return germanDay(Date.parse(instant) - 1);
}

/** So many days after another one. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

function offsetMs(ms: number): number {
  const name = berlin.formatToParts(ms).find(({ type }) => type === "timeZoneName")!.value;
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(name) ?? ["", "+", "0", "0"];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
