import fc from "fast-check";
import { expect, test } from "vitest";
import { numberAfter, numberText, vatCentsOf, vatFor } from "./invoice-rules.ts";

test.each([
  [100, 1900, 19],
  [3500, 1900, 665],
  [9453, 1900, 1796], // 1796.07
  [50, 1900, 10], // 9.5: half a cent is rounded up
  [50, 700, 4], // 3.5
  [1, 1900, 0],
  [12_900, 0, 0],
  [2_147_483_647, 10_000, 2_147_483_647],
])("VAT on %d cents at %d hundredths of a percent is %d cents", (net, hundredths, vat) => {
  expect(vatCentsOf(net, hundredths)).toBe(vat);
});

test("VAT is never further than half a cent from its exact value, and half a cent is rounded up", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_147_483_647 }), fc.integer({ min: 0, max: 10_000 }), (net, hundredths) => {
      const exact = BigInt(net) * BigInt(hundredths); // in 1/10,000 of a cent
      const off = BigInt(vatCentsOf(net, hundredths)) * 10_000n - exact;
      expect(-5_000n < off && off <= 5_000n).toBe(true);
    }),
  );
});

test("numbers count in each German year, and their days never decrease", () => {
  const at = (text: string) => Date.parse(text);
  const first = numberAfter({ year: 0, position: 0, issuedMs: 0 }, at("2026-12-31T22:59:00Z"));
  expect(numberText("", first)).toBe("2026-00001");
  const second = numberAfter(first, at("2026-12-31T22:59:59Z"));
  expect(numberText("R-", second)).toBe("R-2026-00002");
  const newYear = numberAfter(second, at("2026-12-31T23:00:00Z"));
  expect(numberText("R-", newYear)).toBe("R-2027-00001");
  const behind = numberAfter(newYear, at("2026-12-31T22:59:59Z"));
  expect([numberText("R-", behind), behind.issuedMs]).toEqual(["R-2027-00002", newYear.issuedMs]);
});

test("reverse charge applies to accounts with a VAT id in its countries only", () => {
  const vat = { hundredths: 1900, note: null, reverseCharge: { countries: ["AT"], note: "reverse charge" } };
  const buyer = { name: "", street: "", postalCode: "", city: "", email: null };
  expect(vatFor(vat, { ...buyer, country: "AT", vatId: "ATU12345678" })).toEqual({
    hundredths: 0,
    note: "reverse charge",
  });
  expect(vatFor(vat, { ...buyer, country: "AT", vatId: null })).toEqual({ hundredths: 1900, note: null });
  expect(vatFor(vat, { ...buyer, country: "FR", vatId: "FR12345678901" })).toEqual({ hundredths: 1900, note: null });
});
