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
  /** Accounts that have asked lately, in the order of their last request. */
  readonly accounts: ReadonlyMap<AccountId, Share>;
}

/** How long an account is remembered after its last request. */
export const rememberedMs = 3_600_000;
/** Bound of the memory. An account that is forgotten enters again at the level. */
const accountsMax = 1_024;

const newestWeight = 0.1;

export const noShares: FairShares = { level: 0, answerCost: 1_000, accounts: new Map() };

/** Output weighs twice as much as input, as in the paper: the tokens of a prompt are read together. */
export function costOf({ promptTokens, completionTokens }: TokensUsed): number {
  return promptTokens + 2 * completionTokens;
}

export interface TokensUsed {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export function usedBy({ accounts, level }: FairShares, account: AccountId): number {
  return accounts.get(account)?.used ?? level;
}

/** Notes a request of the account. `waiting`: the accounts that wait for this engine. */
export function asked(
  shares: FairShares,
  account: AccountId,
  waiting: ReadonlySet<AccountId>,
  nowMs: number,
): FairShares {
  const accounts = new Map(shares.accounts);
  const used = usedBy(shares, account);
  accounts.delete(account);
  accounts.set(account, {
    used: waiting.has(account) ? used : Math.max(used, levelOf(shares, waiting)),
    askedMs: nowMs,
  });
  for (const [oldest, { askedMs }] of accounts) {
    if (accounts.size <= accountsMax && askedMs > nowMs - rememberedMs) break;
    accounts.delete(oldest);
  }
  return { ...shares, accounts };
}

function levelOf(shares: FairShares, waiting: ReadonlySet<AccountId>): number {
  let least = Infinity;
  for (const account of waiting) least = Math.min(least, usedBy(shares, account));
  return least === Infinity ? shares.level : least;
}

/** Counts what a request of the account used for so many answers. */
export function used(shares: FairShares, account: AccountId, cost: number, answers: number): FairShares {
  const answerCost = shares.answerCost + newestWeight * (cost / answers - shares.answerCost);
  const share = shares.accounts.get(account);
  if (!share) return { ...shares, answerCost };
  const accounts = new Map(shares.accounts).set(account, { ...share, used: share.used + cost });
  return { ...shares, answerCost, accounts };
}
