import { describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { timeZone } from "../subscriptions/billing-period.ts";
import { forecast, paceBeginsMs } from "./forecast.ts";

const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
const credits = (whole: number) => millicredits(BigInt(whole) * 1000n);
const nowMs = berlin("2026-11-25T12:00");
const dayMs = 86_400_000;
const endMs = berlin("2026-12-14T00:00");

describe("the pace begins", () => {
  test.each([
    ["seven whole German days before today", "2026-11-25T14:03", "2026-01-01T00:00", "2026-11-18T00:00"],
    ["with the first package if it is younger", "2026-11-25T14:03", "2026-11-23T09:30", "2026-11-23T09:30"],
    [
      "at German midnight, also before the change to summer time",
      "2026-03-30T10:00",
      "2026-01-01T00:00",
      "2026-03-23T00:00",
    ],
    [
      "at German midnight, also before the change to winter time",
      "2026-10-26T10:00",
      "2026-01-01T00:00",
      "2026-10-19T00:00",
    ],
  ])("%s", (_name, now, firstPackage, begins) => {
    expect(paceBeginsMs(berlin(now), berlin(firstPackage))).toBe(berlin(begins));
  });
});

describe("the forecast", () => {
  const pace = (used: number, days: number) => ({ used: credits(used), sinceMs: nowMs - days * dayMs, nowMs });
  const ended = { perDay: credits(100), untilMs: nowMs, toCome: credits(1_850) };

  test.each([
    [
      "ends when the remaining credits are used at this pace",
      pace(700, 7),
      500,
      { perDay: credits(100), untilMs: nowMs + 5 * dayMs, toCome: credits(1_850) },
    ],
    [
      "uses the real length of a pace that began with the first package",
      pace(300, 2),
      300,
      { perDay: credits(150), untilMs: nowMs + 2 * dayMs, toCome: credits(2_775) },
    ],
    [
      "has no end if the new quota begins earlier",
      pace(700, 7),
      50_000,
      { perDay: credits(100), untilMs: null, toCome: credits(1_850) },
    ],
    ["has no end without usage", pace(0, 7), 500, { perDay: credits(0), untilMs: null, toCome: credits(0) }],
    ["ends now if the quota is used up", pace(700, 7), 0, ended],
    ["ends now if running requests exceeded the quota", pace(700, 7), -3, ended],
    ["is undefined within the first hour", pace(700, 0.04), 500, undefined],
  ])("%s", (_name, of, remaining, expected) => {
    expect(forecast(of, credits(remaining), endMs)).toEqual(expected);
  });

  test("is exact beyond the precision of floating point", () => {
    const used = millicredits(650_000_000_000_000_001n);
    const { perDay, untilMs } = forecast({ used, sinceMs: nowMs - 7 * dayMs, nowMs }, used, nowMs + 30 * dayMs)!;
    expect(perDay).toBe(92_857_142_857_142_857n);
    expect(untilMs).toBe(nowMs + 7 * dayMs);
  });
});
