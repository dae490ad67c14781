/** The interface for an account's limits. One router in memory or several routers with a store can implement it. */
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";

export interface AccountLimits {
  readonly perMinute: number;
  readonly parallel: number;
}

export type LimitJudgement =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly limit: "minute" | "parallel" };

/**
 * `retryAfterMs`: after which time this request would be admitted, if all earlier refused requests come back at theirs.
 * Always whole seconds, at most 60.
 */
export type LimitDecision =
  | Extract<LimitJudgement, { readonly admitted: true }>
  | (Extract<LimitJudgement, { readonly admitted: false }> & { readonly retryAfterMs: number });

export interface LimitUse {
  /** The number of requests admitted within the last 60 s. */
  readonly lastMinute: number;
  readonly parallel: number;
}

export interface Limiter {
  /**
   * Decides both limits at once: a sliding window of 60 s and a set of live request ids. A refusal by one limit consumes
   * nothing of the other. If both limits refuse, either may be reported. A request id that already holds a place is
   * admitted again without being counted. `isRetry`: the client reports that it was refused before.
   */
  enter(
    account: AccountId,
    request: RequestId,
    limits: AccountLimits,
    isRetry?: boolean,
  ): LimitDecision | Promise<LimitDecision>;
  /** Frees the parallel place. Does nothing for an id that holds none. */
  leave(account: AccountId, request: RequestId): void;
  /** Returns the current use over all routers that share the limits. Changes nothing. */
  use(account: AccountId): LimitUse | Promise<LimitUse>;
}
