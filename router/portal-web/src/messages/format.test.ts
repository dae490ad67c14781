import { expect, test } from "vitest";
import { createFormat, distance, shareOf } from "./format.ts";

const [de, en] = [createFormat("de"), createFormat("en")];
const plain = (text: string) => text.replaceAll("\u00a0", " ");

test("numbers are exact or short, in the language's format", () => {
  expect([de.number("33612345.678"), en.number("33612345.678")]).toEqual(["33.612.345,678", "33,612,345.678"]);
  expect([de.short("33612345.678"), en.short("33612345.678")].map(plain)).toEqual(["33,6 Mio.", "33.6M"]);
  expect(plain(de.euros(5953))).toBe("59,53 €");
});

test("times are in the German time zone", () => {
  expect(de.date("2026-12-13T23:30:00Z")).toBe("14.12.2026");
  expect(en.dateTime("2026-11-25T13:03:00Z")).toBe("25 Nov 2026, 14:03");
});

test("a distance is rounded towards now", () => {
  expect(distance(47 * 3_600_000)).toEqual([1, "day"]);
  expect(distance(-90 * 60_000)).toEqual([-1, "hour"]);
  expect(distance(20_000)).toEqual([0, "minute"]);
});

test("a share of zero is unknown", () => {
  expect([shareOf("5.000", "0.000"), shareOf("5.000", "20.000")]).toEqual([0, 0.25]);
});
