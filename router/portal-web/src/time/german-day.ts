/** Converts German days, which people choose, to the API's instants. Pure. */
const berlin = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", timeZoneName: "longOffset" });
const parts = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin", dateStyle: "short" });

/** Returns the German day at this instant, such as 2026-11-21. */
export function germanDay(ms: number): string {
  return parts.format(ms);
}

/** Returns the instant at which the day ends. */
export function endOfGermanDay(day: string): string {
  const nextMidnightUtc = Date.parse(`${day}T00:00:00Z`) + 86_400_000;
  // The offset is unambiguous at midnight, because clocks change at 1:00 UTC.
  return new Date(nextMidnightUtc - offsetMs(nextMidnightUtc)).toISOString();
}

/** Returns the instant at which the day begins. */
export function startOfGermanDay(day: string): string {
  return endOfGermanDay(addDays(day, -1));
}

/** Returns the last day that ends before or at this instant. */
export function lastGermanDay(instant: string): string {
  return germanDay(Date.parse(instant) - 1);
}

/** Returns how many German days are left before this instant, today included; 1 on the last day. */
export function daysLeft(end: string, nowMs: number): number {
  return (Date.parse(lastGermanDay(end)) - Date.parse(germanDay(nowMs))) / 86_400_000 + 1;
}

export function isGermanMidnight(instant: string): boolean {
  return lastGermanDay(instant) !== germanDay(Date.parse(instant));
}

/** Returns the day that is so many days later. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

/** Lists every day from the first to the last. */
export function daysBetween(from: string, to: string, max = 400): readonly string[] {
  const days: string[] = [];
  for (let day = from; day <= to && days.length < max; day = addDays(day, 1)) days.push(day);
  return days;
}

/** Returns undefined for a text that is no day, because an address may contain any text. */
export function readDay(text: string | undefined): string | undefined {
  if (!text || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const ms = Date.parse(`${text}T00:00:00Z`);
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text ? undefined : text;
}

function offsetMs(ms: number): number {
  const name = berlin.formatToParts(ms).find(({ type }) => type === "timeZoneName")!.value;
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(name) ?? ["", "+", "0", "0"];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
