/** Numbers, amounts, days and times as a language writes them. Days and times are German ones, wherever the browser is. */
import { isGermanMidnight, lastGermanDay } from "../time/german-day.ts";

export type Language = "de" | "en";

const timeZone = "Europe/Berlin";
/** In German, a smaller compact number has no unit, so that 12.300 for 12345 looks exact. */
const shortFrom = 1_000_000;

export type Format = ReturnType<typeof createFormat>;

export function createFormat(language: Language) {
  const locale = language === "de" ? "de-DE" : "en-GB";
  const number = (options: Intl.NumberFormatOptions) => new Intl.NumberFormat(locale, options);
  const time = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(locale, { timeZone, ...options });
  const plain = number({ maximumFractionDigits: 3 });
  // In British English a million is "m", which reads as metres or thousandths.
  const compact = new Intl.NumberFormat(language === "de" ? locale : "en-US", {
    notation: "compact",
    maximumSignificantDigits: 3,
  });
  const euros = number({ style: "currency", currency: "EUR" });
  const share = number({ style: "percent", maximumFractionDigits: 0 });
  const days = number({ style: "unit", unit: "day", unitDisplay: "long" });
  const date = time({ dateStyle: "medium" });
  const dayAndMonth = time({ day: "numeric", month: "short" });
  const dateTime = time({ dateStyle: "medium", timeStyle: "short" });
  const clock = time({ timeStyle: "short" });
  const second = time({ timeStyle: "medium" });
  const tenths = number({ maximumFractionDigits: 1 });
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  const longDay = (day: string) => date.format(new Date(`${day}T12:00:00Z`));
  const lastDay = (end: string) => longDay(lastGermanDay(end));
  const list = new Intl.ListFormat(locale, { type: "conjunction" });
  return {
    language,
    /** Exact. Takes credits as the API writes them. */
    number: (value: number | string) => plain.format(value as number),
    /**
     * From a million on three digits and a unit, such as 33.6M; below it, exact. Beside a limit, use `number`: a rounded
     * sum may look like the limit itself.
     */
    short: (value: number | string) => (Math.abs(Number(value)) < shortFrom ? plain : compact).format(value as number),
    euros: (cents: number) => euros.format(cents / 100),
    percent: (part: number) => share.format(part),
    date: (instant: string) => date.format(new Date(instant)),
    /** A German day of the API, such as 2026-11-21. */
    day: (day: string) => dayAndMonth.format(new Date(`${day}T12:00:00Z`)),
    longDay,
    dateTime: (instant: string) => dateTime.format(new Date(instant)),
    /** The last day of what ends at this instant. Every end in the API is exclusive, and most are midnight. */
    lastDay,
    /** The last day of what ends at midnight; of anything else, the time at which it ends. */
    lastMoment: (end: string) => (isGermanMidnight(end) ? lastDay(end) : dateTime.format(new Date(end))),
    clock: (ms: number) => clock.format(ms),
    /** A time of the day with its second. */
    second: (instant: string) => second.format(new Date(instant)),
    /** A length of time, such as 4.2 s, 12 s, 3 min, 2 h, 5 d. */
    duration: (seconds: number) => {
      if (seconds < 10) return `${tenths.format(seconds)} s`;
      if (seconds < 120) return `${plain.format(Math.round(seconds))} s`;
      if (seconds < 7_200) return `${plain.format(Math.round(seconds / 60))} min`;
      if (seconds < 172_800) return `${plain.format(Math.round(seconds / 3_600))} h`;
      return `${plain.format(Math.round(seconds / 86_400))} d`;
    },
    relative: (instant: string, nowMs: number) => {
      const [amount, unit] = distance(Date.parse(instant) - nowMs);
      return relative.format(amount, unit);
    },
    /** Such as 30 days, 1 Tag. */
    days: (count: number) => days.format(count),
    list: (words: readonly string[]) => list.format(words),
  };
}

/** Rounded towards now: what is due in 47 hours is due tomorrow, not in two days. */
export function distance(ms: number): readonly [amount: number, unit: Intl.RelativeTimeFormatUnit] {
  const minutes = Math.trunc(ms / 60_000);
  if (Math.abs(minutes) < 60) return [minutes, "minute"];
  if (Math.abs(minutes) < 24 * 60) return [Math.trunc(minutes / 60), "hour"];
  return [Math.trunc(minutes / (24 * 60)), "day"];
}

/** The part of a whole that credits are, from 0; beyond 1 where single requests passed beyond a limit. */
export function shareOf(part: string, whole: string): number {
  return Number(whole) === 0 ? 0 : Number(part) / Number(whole);
}
