/** What is remembered of accounts. */
import { expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { asked, comersOf, costOf, noShares, rememberedMs, used, usedBy } from "./fair-shares.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => asId<AccountId>(name)) as [AccountId, AccountId, AccountId];
const nobody = new Set<AccountId>();

test("output weighs twice as much as input", () => {
  expect(costOf({ promptTokens: 100, completionTokens: 10 })).toBe(120);
});

test("an account enters at the least counter of those that wait, and keeps a higher one of its own", () => {
  let shares = asked(asked(noShares, a, nobody, 0), b, nobody, 0);
  shares = used(used(shares, a, 500, 1), b, 800, 1);
  expect(usedBy(asked(shares, c, new Set([a, b]), 1), c)).toBe(500);
  expect(usedBy(asked(shares, b, new Set([a]), 1), b)).toBe(800);
  expect(usedBy(asked(shares, a, new Set([a, b]), 1), a), "it waits already").toBe(500);
});

test("accounts are forgotten an hour after their last request, and beyond 1,024 of them the older ones", () => {
  const early = asked(asked(noShares, a, nobody, 0), b, nobody, 1_000);
  const late = asked(early, c, nobody, rememberedMs);
  expect([...comersOf(late, rememberedMs)].map(([account]) => account).toSorted()).toEqual([b, c]);
  let many = noShares;
  for (let count = 0; count < 5_000; count++) many = asked(many, asId<AccountId>(`account-${count}`), nobody, count);
  const known = [...comersOf(many, 5_000)].map(([, askedMs]) => askedMs);
  expect(known.length).toBe(1_024);
  expect(Math.min(...known), "those that asked lately").toBeGreaterThan(3_000);
  expect(
    asked(late, a, nobody, 10 * rememberedMs).accounts.reduce((sum, { size }) => sum + size, 0),
  ).toBeLessThanOrEqual(3);
});

test("what an answer costs is learned from those that ended", () => {
  const { answerCost } = used(noShares, a, 4 * 2_000, 4);
  expect(answerCost).toBeCloseTo(1_100);
});
