/** What is remembered of accounts. */
import { expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import type { FairShares } from "./fair-shares.ts";
import { asked, costOf, isComer, noShares, rememberedMs, taken, used, usedBy, withoutHeld } from "./fair-shares.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => asId<AccountId>(name)) as [AccountId, AccountId, AccountId];
const nobody: readonly { account: AccountId }[] = [];
const waiting = (...accounts: readonly AccountId[]) => accounts.map((account) => ({ account }));
const ended = (account: AccountId, places = 1) => ({ account, places, cost: 0 });
const comersOf = ({ accounts }: FairShares, nowMs: number) => accounts.flat().filter((share) => isComer(share, nowMs));

test("output weighs twice as much as input", () => {
  expect(costOf({ promptTokens: 100, completionTokens: 10 })).toBe(120);
});

test("an account enters at the least counter of those that wait, and keeps a higher one of its own", () => {
  let shares = asked(asked(noShares, a, nobody, 0), b, nobody, 0);
  shares = used(used(shares, ended(a), 500), ended(b), 800);
  expect(usedBy(asked(shares, c, waiting(a, b), 1), c)).toBe(500);
  expect(usedBy(asked(shares, b, waiting(a), 1), b)).toBe(800);
  expect(usedBy(asked(shares, a, waiting(a, b), 1), a), "it waits already").toBe(500);
});

test("accounts are forgotten an hour after their last request, and beyond 1,024 of them the older ones", () => {
  const early = asked(asked(noShares, a, nobody, 0), b, nobody, 1_000);
  const late = asked(early, c, nobody, rememberedMs);
  expect(comersOf(late, rememberedMs).map(({ account }) => account)).toEqual(expect.arrayContaining([b, c]));
  let many = noShares;
  for (let count = 0; count < 5_000; count++) many = asked(many, asId<AccountId>(`account-${count}`), nobody, count);
  const known = comersOf(many, 5_000).map(({ askedMs }) => askedMs);
  expect(known.length).toBe(1_024);
  expect(Math.min(...known), "those that asked lately").toBeGreaterThan(3_000);
  expect(asked(late, a, nobody, 10 * rememberedMs).accounts.flat().length).toBeLessThanOrEqual(3);
});

test("what an answer costs is learned from those that ended", () => {
  const { answerCost } = used(noShares, ended(a, 4), 4 * 2_000);
  expect(answerCost).toBeCloseTo(1_100);
});

test("an account that holds a place is no comer and is not forgotten, until its last place is given back or the engine is gone", () => {
  const holds = taken(asked(noShares, a, nobody, 0), a, 2, 900);
  expect(comersOf(holds, 0)).toEqual([]);
  let crowded = holds;
  for (let count = 0; count < 5_000; count++)
    crowded = asked(crowded, asId<AccountId>(`account-${count}`), nobody, count);
  expect(crowded.accounts.flat().find(({ account }) => account === a)).toMatchObject({ places: 2, expected: 900 });
  const half = used(holds, { account: a, places: 1, cost: 450 }, 10);
  expect(comersOf(half, 0)).toEqual([]);
  expect(comersOf(used(half, { account: a, places: 1, cost: 450 }, 10), 0)).toMatchObject([{ used: 20, expected: 0 }]);
  expect(comersOf(withoutHeld(holds), 0)).toMatchObject([{ account: a, places: 0, expected: 0 }]);
});
