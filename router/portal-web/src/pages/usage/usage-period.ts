/** Reads the days of the usage page from its address. Pure. */
import { addDays, readDay } from "../../time/german-day.ts";

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
