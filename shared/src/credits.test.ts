import fc from "fast-check";
import { expect, test } from "vitest";
import { creditsOf, formatCredits, millicredits, parseFactor } from "./credits.ts";

test("a request costs its tokens times the factor, exactly [S20.1]", () => {
  expect(creditsOf(40, 21, parseFactor(1)!)).toBe(61_000n);
  expect(creditsOf(3, 0, parseFactor(0.25)!)).toBe(750n);
  expect(creditsOf(1_000_000, 333_333, parseFactor("1.5")!)).toBe(1_999_999_500n);
});

test("credits are shown with three decimal places", () => {
  expect(formatCredits(millicredits(61_500n))).toBe("61.500");
  expect(formatCredits(millicredits(7n))).toBe("0.007");
  expect(formatCredits(millicredits(0n))).toBe("0.000");
  expect(formatCredits(millicredits(-1n))).toBe("-0.001");
});

test.each(["", "-1", "1.", ".5", "1e3", "1.2345", "0x10", "1,5", "NaN"])("%j is not a factor", (text) => {
  expect(parseFactor(text)).toBeUndefined();
});

test("a factor of thousandths survives being written and read", () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 999_999_999n), (value) => {
      expect(parseFactor(formatCredits(millicredits(value)))).toBe(value);
    }),
  );
});
