/** What is remembered of accounts. */
import { expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { asked, costOf, noShares, rememberedMs, used, usedBy } from "./fair-shares.ts";

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

test("accounts are forgotten an hour after their last request, and beyond 1,024 of them the oldest", () => {
  const early = asked(asked(noShares, a, nobody, 0), b, nobody, 1_000);
  expect([...asked(early, c, nobody, rememberedMs).accounts.keys()]).toEqual([b, c]);
  let many = noShares;
  for (let count = 0; count < 1_100; count++) many = asked(many, asId<AccountId>(`${count}`), nobody, count);
  expect([many.accounts.size, [...many.accounts.keys()][0]]).toEqual([1_024, "76"]);
});

test("what an answer costs is learned from those that ended", () => {
  const { answerCost } = used(noShares, a, 4 * 2_000, 4);
  expect(answerCost).toBeCloseTo(1_100);
});
