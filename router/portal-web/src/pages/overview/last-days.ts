/** The credits of the last days, also of days without any. Pure. */
import { addDays, daysBetween } from "../../time/german-day.ts";

export const daysShown = 30;

interface DayRow {
  readonly day?: string;
  readonly credits: string;
}

/** The first of the days that end with this one. */
export function firstDay(today: string): string {
  return addDays(today, 1 - daysShown);
}

export function lastDays(rows: readonly DayRow[], today: string) {
  const credits = new Map(rows.map((row) => [row.day, Number(row.credits)]));
  return daysBetween(firstDay(today), today).map((day) => ({ day, credits: credits.get(day) ?? 0 }));
}
