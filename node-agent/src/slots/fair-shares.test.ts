/** Which shares of an engine are remembered, and for how long. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import type { FairShares } from "./fair-shares.ts";
import {
  asked,
  costOf,
  isComer,
  noShares,
  rememberedMs,
  shareOf,
  taken,
  used,
  usedBy,
  withoutHeld,
} from "./fair-shares.ts";
import { sharesOf } from "./slot-places.ts";
import { active, a as model, type Play } from "../../test/slots/slot-play.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => asId<AccountId>(name)) as [AccountId, AccountId, AccountId];
const nobody: readonly { account: AccountId }[] = [];
const waiting = (...accounts: readonly AccountId[]) => accounts.map((account) => ({ account }));
const ended = (account: AccountId, places = 1) => ({ account, places, cost: 0 });
const comersOf = ({ accounts }: FairShares, nowMs: number) => accounts.flat().filter((share) => isComer(share, nowMs));

test("output weighs twice as much as input", () => {
  expect(costOf({ promptTokens: 100, completionTokens: 10 })).toBe(120);
});

test("an account enters at the lowest counter of the waiting accounts, unless its own counter is higher", () => {
  let shares = asked(asked(noShares, a, nobody, 0), b, nobody, 0);
  shares = used(used(shares, ended(a), 500), ended(b), 800);
  expect(usedBy(asked(shares, c, waiting(a, b), 1), c)).toBe(500);
  expect(usedBy(asked(shares, b, waiting(a), 1), b)).toBe(800);
  expect(usedBy(asked(shares, a, waiting(a, b), 1), a), "it waits already").toBe(500);
});

test("accounts are forgotten an hour after their last request, and the oldest ones if there are more than 1,024", () => {
  const early = asked(asked(noShares, a, nobody, 0), b, nobody, 1_000);
  const late = asked(early, c, nobody, rememberedMs);
  expect(comersOf(late, rememberedMs).map(({ account }) => account)).toEqual(expect.arrayContaining([b, c]));
  let many = noShares;
  for (let count = 0; count < 5_000; count++) many = asked(many, asId<AccountId>(`account-${count}`), nobody, count);
  const known = comersOf(many, 5_000).map(({ askedMs }) => askedMs);
  expect(known.length).toBe(1_024);
  expect(Math.min(...known), "the most recent accounts").toBeGreaterThan(3_000);
  expect(asked(late, a, nobody, 10 * rememberedMs).accounts.flat().length).toBeLessThanOrEqual(3);
});

test("the cost of an answer is learned from answers that ended", () => {
  const { answerCost } = used(noShares, ended(a, 4), 4 * 2_000);
  expect(answerCost).toBeCloseTo(1_100);
});

test("an account that holds a place is not a newcomer and is remembered until it gives back its last place or the engine is lost", () => {
  const holds = taken(asked(noShares, a, nobody, 0), { account: a, sinceMs: 0 }, 2, 900);
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

test("an account that is forgotten while it waits holds the place that it gets, and is not a newcomer", () => {
  const [first, ...others] = accountsOfOneBucket(17);
  let shares = asked(noShares, first!, nobody, 0);
  for (const other of others) shares = asked(shares, other, waiting(first!), 1);
  expect(shareOf(shares, first!), "forgotten").toBeUndefined();
  shares = taken(shares, { account: first!, sinceMs: 0 }, 1, 1_000);
  shares = asked(shares, first!, nobody, 2);
  expect(shareOf(shares, first!)).toMatchObject({ places: 1, expected: 1_000 });
  expect(comersOf(shares, 2).map(({ account }) => account)).not.toContain(first);
  shares = used(shares, { account: first!, places: 1, cost: 1_000 }, 10);
  expect(shareOf(shares, first!)).toMatchObject({ places: 0, expected: 0 });
});

/** Returns accounts of one bucket, so that new ones displace old ones. */
function accountsOfOneBucket(count: number): readonly AccountId[] {
  const bucketOf = (account: AccountId) =>
    asked(noShares, account, nobody, 0).accounts.findIndex(({ length }) => length > 0);
  const bucket = bucketOf(a);
  const all = Array.from({ length: 200 * count }, (_, number) => asId<AccountId>(`account-${number}`));
  return all.filter((account) => bucketOf(account) === bucket).slice(0, count);
}

test("after any sequence of events, each account holds as many places as its running requests", () => {
  const accounts = accountsOfOneBucket(24);
  const happening = fc.record({
    what: fc.constantFrom(
      ...Array.from({ length: 16 }, () => "visit"),
      "request",
      "request",
      "leave",
      "release",
      "exit",
    ),
    number: fc.nat({ max: 1_000 }),
    answers: fc.constantFrom(1, 1, 2),
  });
  const history = fc.array(happening, { minLength: 200, maxLength: 400 });
  const wrongAccount = ({ slot }: Play) => {
    const places = new Map<AccountId, number>();
    for (const one of slot.running) places.set(one.account, (places.get(one.account) ?? 0) + one.places);
    const shares = sharesOf(slot, model);
    return accounts.find((account) => (shareOf(shares, account)?.places ?? 0) !== (places.get(account) ?? 0));
  };
  fc.assert(
    fc.property(history, (happenings) => {
      const play = active(model, 1, { waitersMax: 12 });
      for (const one of happenings) {
        happen(play, one, accounts);
        expect(wrongAccount(play)).toBeUndefined();
      }
    }),
    { numRuns: 30 },
  );
});

interface Happening {
  readonly what: string;
  readonly number: number;
  readonly answers: number;
}

function happen(play: Play, { what, number, answers }: Happening, accounts: readonly AccountId[]): void {
  const pick = <One>(ones: readonly One[]) => ones[number % ones.length];
  const { waiters, running } = play.slot;
  if (what === "request") play.request(model, answers, pick(accounts));
  if (what === "leave") play.leave(pick(waiters)?.ticket ?? 0);
  if (what === "release") play.releaseHolding(pick(running));
  // The client leaves at once if its request must wait.
  if (what === "visit") {
    play.request(model, answers, pick(accounts));
    if (play.slot.waiters.length > waiters.length) play.leave(play.slot.waiters.at(-1)!.ticket);
  }
  if (what === "exit" && number % 20 === 0) {
    play.exits(model);
    play.news("stopped");
    play.news("started");
  }
}
