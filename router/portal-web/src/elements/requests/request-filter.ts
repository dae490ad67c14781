/** Reads the filters of a list of requests from the page's address. Pure. */
import { addDays, endOfGermanDay, germanDay, readDay, startOfGermanDay } from "../../time/german-day.ts";

export const times = ["all", "24h", "7", "own"] as const;
type Time = (typeof times)[number];

export interface ChosenTime {
  readonly choice: Time;
  /** German days, of the choice `own`. */
  readonly fromDay?: string | undefined;
  readonly toDay?: string | undefined;
  /** Instants for the API. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

type Get = (name: string) => string | undefined;

const hourMs = 3_600_000;
const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The last 24 hours begin at a whole hour, as those of the refusals' count do. */
export function chosenTime(get: Get, nowMs: number): ChosenTime {
  const [fromDay, toDay] = [readDay(get("from")), readDay(get("to"))];
  if (fromDay !== undefined || toDay !== undefined) {
    return {
      choice: "own",
      fromDay,
      toDay,
      from: fromDay && startOfGermanDay(fromDay),
      to: toDay && endOfGermanDay(toDay),
    };
  }
  const time = get("time");
  if (time === "24h") return { choice: time, from: new Date((Math.floor(nowMs / hourMs) - 23) * hourMs).toISOString() };
  if (time === "7") return { choice: time, from: startOfGermanDay(addDays(germanDay(nowMs), -6)) };
  return { choice: "all" };
}

/** Returns undefined for a malformed id, because an address may contain any text. */
export function readId(text: string | undefined): string | undefined {
  return text !== undefined && idPattern.test(text) ? text : undefined;
}

/** Returns undefined for a text that the API would refuse. */
export function readShort(text: string | undefined, lengthMax: number): string | undefined {
  return text && text.length <= lengthMax ? text : undefined;
}
