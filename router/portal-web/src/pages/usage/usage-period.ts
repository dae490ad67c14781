/** Reads the days of the usage page from its address. Pure. */
import { addDays } from "../../time/german-day.ts";

export const periodChoices = ["period", "7", "30", "90", "own"] as const;
type PeriodChoice = (typeof periodChoices)[number];

export interface UsageDays {
  readonly choice: PeriodChoice;
  /** If undefined, the billing period is shown. */
  readonly from?: string;
  readonly to?: string;
}

export function usageDays(get: (name: string) => string | undefined, today: string): UsageDays {
  const [from, to] = [readDay(get("from")), readDay(get("to"))];
  if (from !== undefined || to !== undefined) {
    const last = to ?? today;
    const first = from ?? last;
    return first <= last ? { choice: "own", from: first, to: last } : { choice: "own", from: last, to: first };
  }
  const choice = periodChoices.find((one) => one === get("days"));
  if (choice === undefined || choice === "period" || choice === "own") return { choice: "period" };
  return { choice, from: addDays(today, 1 - Number(choice)), to: today };
}

/** Lists every day from the first to the last. */
export function daysBetween(from: string, to: string, max = 400): readonly string[] {
  const days: string[] = [];
  for (let day = from; day <= to && days.length < max; day = addDays(day, 1)) days.push(day);
  return days;
}

function readDay(text: string | undefined): string | undefined {
  if (!text || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const ms = Date.parse(`${text}T00:00:00Z`);
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text ? undefined : text;
}
