/**
 * What each account has used of one engine lately, as a virtual counter ("Fairness in Serving Large Language Models",
 * OSDI 2024). The account with the least counter gets the next place. An account that begins to wait enters at the level
 * of those that wait already, so that an account cannot save up places while it does not ask.
 */
import type { AccountId } from "@weiche/shared/ids.ts";

interface Share {
  readonly used: number;
  readonly askedMs: number;
}

export interface FairShares {
  /** Counter of the account that was admitted last. */
  readonly level: number;
  /** Moving average of the cost of one answer. */
  readonly answerCost: number;
  readonly accounts: AccountTable;
}

/** Accounts that have asked lately, in buckets by a hash, so that a change copies few of them. Each in order of the last request. */
type AccountTable = readonly ReadonlyMap<AccountId, Share>[];

/** How long an account is remembered after its last request. */
export const rememberedMs = 3_600_000;
const buckets = 32;
/** Bound of the memory. An account that is forgotten enters again at the level. */
const bucketAccountsMax = 32;

const newestWeight = 0.1;

export const noShares: FairShares = {
  level: 0,
  answerCost: 1_000,
  accounts: Array.from({ length: buckets }, () => new Map()),
};

/** Output weighs twice as much as input, as in the paper: the tokens of a prompt are read together. */
export function costOf({ promptTokens, completionTokens }: TokensUsed): number {
  return promptTokens + 2 * completionTokens;
}

export interface TokensUsed {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export function usedBy({ accounts, level }: FairShares, account: AccountId): number {
  return accounts[bucketOf(account)]!.get(account)?.used ?? level;
}

/** Notes a request of the account. `waiting`: the accounts that wait for this engine. */
export function asked(
  shares: FairShares,
  account: AccountId,
  waiting: ReadonlySet<AccountId>,
  nowMs: number,
): FairShares {
  const index = bucketOf(account);
  const bucket = new Map(shares.accounts[index]);
  const used = usedBy(shares, account);
  bucket.delete(account);
  bucket.set(account, {
    used: waiting.has(account) ? used : Math.max(used, levelOf(shares, waiting)),
    askedMs: nowMs,
  });
  for (const [oldest, { askedMs }] of bucket) {
    if (bucket.size <= bucketAccountsMax && askedMs > nowMs - rememberedMs) break;
    bucket.delete(oldest);
  }
  return { ...shares, accounts: shares.accounts.with(index, bucket) };
}

function levelOf(shares: FairShares, waiting: ReadonlySet<AccountId>): number {
  let least = Infinity;
  for (const account of waiting) least = Math.min(least, usedBy(shares, account));
  return least === Infinity ? shares.level : least;
}

/** Counts what a request of the account used for so many answers. */
export function used(shares: FairShares, account: AccountId, cost: number, answers: number): FairShares {
  const answerCost = shares.answerCost + newestWeight * (cost / answers - shares.answerCost);
  const index = bucketOf(account);
  const share = shares.accounts[index]!.get(account);
  if (!share) return { ...shares, answerCost };
  const bucket = new Map(shares.accounts[index]).set(account, { ...share, used: share.used + cost });
  return { ...shares, answerCost, accounts: shares.accounts.with(index, bucket) };
}

/** The accounts that have asked lately, with the time of their last request. */
export function* comersOf({ accounts }: FairShares, nowMs: number): Generator<readonly [AccountId, number]> {
  for (const bucket of accounts)
    for (const [account, { askedMs }] of bucket) if (askedMs > nowMs - rememberedMs) yield [account, askedMs];
}

/** FNV-1a. */
function bucketOf(account: AccountId): number {
  let hash = 2_166_136_261;
  for (let index = 0; index < account.length; index++) hash = Math.imul(hash ^ account.charCodeAt(index), 16_777_619);
  return ((hash ^ (hash >>> 15)) >>> 0) % buckets;
}
