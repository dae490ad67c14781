/** An account's rate and parallel limits as one interface, which a store shared by several routers can implement. */
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";

export interface AccountLimits {
  readonly perMinute: number;
  readonly parallel: number;
}

export type LimitJudgement =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly limit: "minute" | "parallel" };

/** `retryAfterMs`: whole seconds, 60 at most, after which this request would be admitted, given who was told before. */
export type LimitDecision =
  | Extract<LimitJudgement, { readonly admitted: true }>
  | (Extract<LimitJudgement, { readonly admitted: false }> & { readonly retryAfterMs: number });

export interface LimitUse {
  /** Requests admitted within the last 60 s. */
  readonly lastMinute: number;
  readonly parallel: number;
}

export interface Limiter {
  /**
   * Decides both limits at once: a true sliding window of 60 s and a set of live request ids. A refusal by one limit
   * consumes nothing of the other; a request that both refuse is told of either. A request id that holds a place
   * already is admitted again without counting.
   */
  enter(account: AccountId, request: RequestId, limits: AccountLimits): LimitDecision | Promise<LimitDecision>;
  /** Frees the parallel place. Does nothing for an id that holds none. */
  leave(account: AccountId, request: RequestId): void;
  /** Current usage over all routers that share the limits. Read-only. */
  use(account: AccountId): LimitUse | Promise<LimitUse>;
}
