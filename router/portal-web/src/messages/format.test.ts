import { expect, test } from "vitest";
import { createFormat, distance, shareOf } from "./format.ts";

const [de, en] = [createFormat("de"), createFormat("en")];
const plain = (text: string) => text.replaceAll("\u00a0", " ");

test("numbers are exact, or short with a unit, in the language's format", () => {
  expect([de.number("33612345.678"), en.number("33612345.678")]).toEqual(["33.612.345,678", "33,612,345.678"]);
  expect([de.short("33612345.678"), en.short("33612345.678")].map(plain)).toEqual(["33,6 Mio.", "33.6M"]);
  expect(["12345", "999999", "-811.5", "3126"].map(de.short)).toEqual(["12.345", "999.999", "-811,5", "3.126"]);
  expect(["12345", "999999", "-811.5", "3126"].map(en.short)).toEqual(["12,345", "999,999", "-811.5", "3,126"]);
  expect(plain(de.euros(5953))).toBe("59,53 €");
});

test("times are in the German time zone", () => {
  expect(de.date("2026-12-13T23:30:00Z")).toBe("14.12.2026");
  expect(en.dateTime("2026-11-25T13:03:00Z")).toBe("25 Nov 2026, 14:03");
});

test("an end at midnight is written as the day before, and any other end with its time", () => {
  const [midnight, noon] = ["2026-11-30T23:00:00Z", "2026-11-30T11:00:00Z"];
  expect([de.lastDay(midnight), en.lastDay(midnight)]).toEqual(["30.11.2026", "30 Nov 2026"]);
  expect([de.lastDay(noon), de.lastMoment(midnight)]).toEqual(["30.11.2026", "30.11.2026"]);
  expect(de.lastMoment(noon)).toBe("30.11.2026, 12:00");
});

test("a distance is rounded towards now", () => {
  expect(distance(47 * 3_600_000)).toEqual([1, "day"]);
  expect(distance(-90 * 60_000)).toEqual([-1, "hour"]);
  expect(distance(20_000)).toEqual([0, "minute"]);
});

test("a share of zero is unknown", () => {
  expect([shareOf("5.000", "0.000"), shareOf("5.000", "20.000")]).toEqual([0, 0.25]);
});
