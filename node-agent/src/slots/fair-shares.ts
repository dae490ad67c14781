/**
 * Counts what each account has used of one engine lately, as a virtual counter ("Fairness in Serving Large Language
 * Models", OSDI 2024). The account with the lowest counter gets the next place. An account that begins to wait enters
 * at the level of the waiting accounts, so that no account can save up places while it is idle.
 */
import type { AccountId } from "@weiche/shared/ids.ts";

/** The share of one account. */
export interface Share {
  readonly account: AccountId;
  readonly used: number;
  readonly askedMs: number;
  /** The places that the account holds, and the estimated cost of the requests that hold them. */
  readonly places: number;
  readonly expected: number;
}

export interface FairShares {
  /** The counter of the account that was admitted last. */
  readonly level: number;
  /** The moving average of the cost of one answer. */
  readonly answerCost: number;
  readonly accounts: AccountTable;
}

/**
 * The accounts with recent requests, in buckets by a hash, so that a change copies few of them. Each bucket is in the
 * order of the last requests.
 */
type AccountTable = readonly (readonly Share[])[];

/** How long an account is remembered after its last request. */
export const rememberedMs = 3_600_000;
const buckets = 64;
/**
 * Limits the accounts in a bucket. Accounts that hold places do not count. A forgotten account enters again at the
 * level.
 */
const bucketAccountsMax = 16;

const newestWeight = 0.1;

export const noShares: FairShares = {
  level: 0,
  answerCost: 1_000,
  accounts: Array.from({ length: buckets }, () => []),
};

/** Output weighs twice as much as input, as in the paper, because an engine reads the tokens of a prompt together. */
export function costOf({ promptTokens, completionTokens }: TokensUsed): number {
  return promptTokens + 2 * completionTokens;
}

export interface TokensUsed {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export function usedBy(shares: FairShares, account: AccountId): number {
  return shareOf(shares, account)?.used ?? shares.level;
}

/** Returns undefined for an unknown account, which has used nothing beyond the level. */
export function shareOf({ accounts }: FairShares, account: AccountId): Share | undefined {
  for (const share of accounts[bucketOf(account)]!) if (share.account === account) return share;
  return undefined;
}

/** Records a request of the account. `waiting`: the requests that wait for this engine. */
export function asked(
  shares: FairShares,
  account: AccountId,
  waiting: readonly { readonly account: AccountId }[],
  nowMs: number,
): FairShares {
  const index = bucketOf(account);
  const bucket = shares.accounts[index]!;
  const before = bucket.find((share) => share.account === account);
  const used = before?.used ?? shares.level;
  const isWaiting = waiting.some((other) => other.account === account);
  const share: Share = {
    account,
    used: isWaiting ? used : Math.max(used, levelOf(shares, waiting)),
    askedMs: nowMs,
    places: before?.places ?? 0,
    expected: before?.expected ?? 0,
  };
  const others = before ? bucket.filter((other) => other !== before) : [...bucket];
  return { ...shares, accounts: replaced(shares.accounts, index, withoutOldest([...others, share], nowMs)) };
}

/** Returns a copy. `Array.with` takes several times as long. */
function replaced<One>(ones: readonly One[], index: number, one: One): readonly One[] {
  const copy = ones.slice();
  copy[index] = one;
  return copy;
}

function withoutOldest(bucket: readonly Share[], nowMs: number): readonly Share[] {
  const isKept = ({ places, askedMs }: Share, index: number) =>
    places > 0 || (bucket.length - index <= bucketAccountsMax && askedMs > nowMs - rememberedMs);
  return bucket.every(isKept) ? bucket : bucket.filter(isKept);
}

function levelOf(shares: FairShares, waiting: readonly { readonly account: AccountId }[]): number {
  let least = Infinity;
  for (const { account } of waiting) least = Math.min(least, usedBy(shares, account));
  return least === Infinity ? shares.level : least;
}

/**
 * Records that an account takes places for requests with an estimated cost, and sets the level. `sinceMs`: when its
 * request came.
 */
export function taken(
  shares: FairShares,
  { account, sinceMs }: { readonly account: AccountId; readonly sinceMs: number },
  places: number,
  expected: number,
): FairShares {
  return changed(
    known(shares, account, sinceMs),
    account,
    (share) => holding(share, places, expected),
    "sets the level",
  );
}

/** Adds the account again if it was forgotten while it waited. Its share becomes the oldest of the bucket. */
function known(shares: FairShares, account: AccountId, askedMs: number): FairShares {
  if (shareOf(shares, account)) return shares;
  const index = bucketOf(account);
  const share: Share = { account, used: shares.level, askedMs, places: 0, expected: 0 };
  return { ...shares, accounts: replaced(shares.accounts, index, [share, ...shares.accounts[index]!]) };
}

/** Records the cost of a request that ended, and takes back its places. */
export function used(
  shares: FairShares,
  { account, places, cost: expected }: { readonly account: AccountId; readonly places: number; readonly cost: number },
  cost: number,
): FairShares {
  const answerCost = shares.answerCost + newestWeight * (cost / places - shares.answerCost);
  return changed({ ...shares, answerCost }, account, (share) => ({
    ...holding(share, -places, -expected),
    used: share.used + cost,
  }));
}

/** Clears all held places, because the engine is gone. */
export function withoutHeld(shares: FairShares): FairShares {
  const accounts = shares.accounts.map((bucket) => bucket.map((share) => ({ ...share, places: 0, expected: 0 })));
  return { ...shares, accounts };
}

function holding(share: Share, places: number, expected: number): Share {
  const held = share.places + places;
  // Sums of fractions are not exact. An account without places has an expected cost of 0.
  return { ...share, places: held, expected: held === 0 ? 0 : share.expected + expected };
}

function changed(
  shares: FairShares,
  account: AccountId,
  change: (share: Share) => Share,
  level?: "sets the level",
): FairShares {
  const index = bucketOf(account);
  const bucket = shares.accounts[index]!;
  const at = bucket.findIndex((share) => share.account === account);
  if (at < 0) return shares;
  const share = bucket[at]!;
  return {
    level: level ? share.used : shares.level,
    answerCost: shares.answerCost,
    accounts: replaced(shares.accounts, index, replaced(bucket, at, change(share))),
  };
}

/** Returns whether the account had a request lately and holds no place. */
export function isComer({ places, askedMs }: Share, nowMs: number): boolean {
  return places === 0 && askedMs > nowMs - rememberedMs;
}

/** FNV-1a of the last characters, where ids differ. */
function bucketOf(account: AccountId): number {
  let hash = 2_166_136_261;
  for (let index = Math.max(0, account.length - hashedLength); index < account.length; index++)
    hash = Math.imul(hash ^ account.charCodeAt(index), 16_777_619);
  return ((hash ^ (hash >>> 15)) >>> 0) % buckets;
}

const hashedLength = 12;
