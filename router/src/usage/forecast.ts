/** Forecasts when the quota will be used up at the pace of the last days. Pure. */
import { millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import { germanDay, timeZone } from "../subscriptions/billing-period.ts";

interface Pace {
  /** Credits used from `sinceMs` to `nowMs`. */
  readonly used: Millicredits;
  readonly sinceMs: number;
  readonly nowMs: number;
}

interface Forecast {
  readonly perDay: Millicredits;
  /** When the quota will be used up; null if not before the billing period ends. */
  readonly untilMs: number | null;
  /** Credits that will be used from now to the end of the billing period. */
  readonly toCome: Millicredits;
}

const dayMs = 86_400_000;
const daysLookedAt = 7;
/** A shorter time gives no forecast. */
const shortestMs = 3_600_000;

/** Returns when the days of the pace begin: seven whole German days before today, or with the account's first package. */
export function paceBeginsMs(nowMs: number, firstPackageMs: number): number {
  const day = Temporal.PlainDate.from(germanDay(nowMs)).subtract({ days: daysLookedAt });
  return Math.max(firstPackageMs, day.toZonedDateTime(timeZone).epochMilliseconds);
}

/** Returns undefined if too little time has passed. `remaining` may be negative: running requests can exceed a quota. */
export function forecast(pace: Pace, remaining: Millicredits, periodEndMs: number): Forecast | undefined {
  const { used, sinceMs, nowMs } = pace;
  const lookedAtMs = nowMs - sinceMs;
  if (lookedAtMs < shortestMs) return undefined;
  const perDay = millicredits((used * BigInt(dayMs)) / BigInt(lookedAtMs));
  const toCome = millicredits((used * BigInt(Math.max(0, periodEndMs - nowMs))) / BigInt(lookedAtMs));
  if (remaining <= 0n) return { perDay, toCome, untilMs: nowMs };
  if (used === 0n) return { perDay, toCome, untilMs: null };
  const lastsMs = Number((remaining * BigInt(lookedAtMs)) / used);
  return { perDay, toCome, untilMs: nowMs + lastsMs < periodEndMs ? nowMs + lastsMs : null };
}
