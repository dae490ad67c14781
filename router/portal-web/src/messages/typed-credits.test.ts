import { expect, test } from "vitest";
import { createFormat } from "./format.ts";
import { readCredits } from "./typed-credits.ts";

const read = (text: string, language: "de" | "en") => {
  const typed = readCredits(text, language);
  return typed.kind === "credits" ? typed.value : typed;
};

test.each([
  "2.000.000",
  "2,000,000",
  "2 000 000",
  "2’000’000",
  "2000000",
  "2M",
  "2 m",
  "2 Mio.",
  "2 mio",
  "2,0 Mio.",
  "2 million",
  "2000k",
  "2.000.000 Credits",
])("%s is two million in both languages", (text) => {
  expect([read(text, "de"), read(text, "en")]).toEqual(["2000000", "2000000"]);
});

test.each([
  ["2.5", "2.5"],
  ["2,5", "2.5"],
  ["0,500", "0.5"],
  ["1500.25", "1500.25"],
  ["1.234,5", "1234.5"],
  ["1,234.5", "1234.5"],
  ["2,5 Mio.", "2500000"],
  ["2.5M", "2500000"],
  [" 40 ", "40"],
  ["0", "0"],
  ["999,999,999", "999999999"],
])("%s is %s in both languages", (text, value) => {
  expect([read(text, "de"), read(text, "en")]).toEqual([value, value]);
});

test("a point or comma before three digits separates thousands in the page's language, and is ambiguous in the other", () => {
  const either = { kind: "ambiguous", small: "2", large: "2000" };
  expect([read("2.000", "de"), read("2,000", "en")]).toEqual(["2000", "2000"]);
  expect([read("2,000", "de"), read("2.000", "en")]).toEqual([either, either]);
  // The larger meaning is beyond the largest limit.
  expect([read("2,500 Mio.", "de"), read("2.500M", "en")]).toEqual(["2500000", "2500000"]);
});

test.each([
  "x",
  "-1",
  "2x",
  "2.00.000",
  "2,00,000",
  "1.2.3",
  "20 00",
  "2.",
  "1,5,5",
  "1000M",
  "1000000000",
  "0.0001",
  "2e6",
  "2 Mrd.",
])("%s is refused", (text) => {
  expect([read(text, "de"), read(text, "en")]).toEqual([{ kind: "unreadable" }, { kind: "unreadable" }]);
});

test("an empty text is no limit", () => {
  expect([readCredits("", "de"), readCredits("  ", "en")]).toEqual([{ kind: "none" }, { kind: "none" }]);
});

test.each(["de", "en"] as const)(
  "in %s, amounts of thousands and millions are read as the portal writes them",
  (language) => {
    const format = createFormat(language);
    for (const value of ["2000", "12345", "999999", "2000000", "2500000", "1234567.891", "999999999"]) {
      expect(readCredits(format.number(value), language)).toEqual({ kind: "credits", value });
      expect(readCredits(`${format.number(value)} Credits`, language)).toEqual({ kind: "credits", value });
    }
    expect(readCredits(format.short("2500000"), language)).toEqual({ kind: "credits", value: "2500000" });
  },
);
