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
    ["with the first package, if that was later", "2026-11-25T14:03", "2026-11-23T09:30", "2026-11-23T09:30"],
    [
      "at German midnight, also before the clock went forward",
      "2026-03-30T10:00",
      "2026-01-01T00:00",
      "2026-03-23T00:00",
    ],
    ["at German midnight, also before the clock went back", "2026-10-26T10:00", "2026-01-01T00:00", "2026-10-19T00:00"],
  ])("%s", (_name, now, firstPackage, begins) => {
    expect(paceBeginsMs(berlin(now), berlin(firstPackage))).toBe(berlin(begins));
  });
});

describe("the forecast", () => {
  const pace = (used: number, days: number) => ({ used: credits(used), sinceMs: nowMs - days * dayMs, nowMs });

  test.each([
    [
      "lasts as long as what is left at that pace",
      pace(700, 7),
      500,
      { perDay: credits(100), untilMs: nowMs + 5 * dayMs },
    ],
    [
      "counts a week that began with the first package by its real length",
      pace(300, 2),
      300,
      { perDay: credits(150), untilMs: nowMs + 2 * dayMs },
    ],
    ["names no end that the new quota comes before", pace(700, 7), 50_000, { perDay: credits(100), untilMs: null }],
    ["names no end without use", pace(0, 7), 500, { perDay: credits(0), untilMs: null }],
    ["ends now with a quota that is used up", pace(700, 7), 0, { perDay: credits(100), untilMs: nowMs }],
    [
      "ends now with a quota that single requests passed beyond",
      pace(700, 7),
      -3,
      { perDay: credits(100), untilMs: nowMs },
    ],
    ["is not known within the first hour", pace(700, 0.04), 500, undefined],
  ])("%s", (_name, of, remaining, expected) => {
    expect(forecast(of, credits(remaining), endMs)).toEqual(expected);
  });

  test("is exact where floating point is not", () => {
    const used = millicredits(650_000_000_000_000_001n);
    const { perDay, untilMs } = forecast({ used, sinceMs: nowMs - 7 * dayMs, nowMs }, used, Infinity)!;
    expect(perDay).toBe(92_857_142_857_142_857n);
    expect(untilMs).toBe(nowMs + 7 * dayMs);
  });
});
