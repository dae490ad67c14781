/** Rate and parallel limits of an account behind one decision, so that a store shared by several routers can take its place. */
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";

export interface AccountLimits {
  readonly perMinute: number;
  readonly parallel: number;
}

export type LimitDecision =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly limit: "minute" | "parallel"; readonly retryAfterMs: number };

export interface LimitUse {
  /** Requests admitted within the last 60 s. */
  readonly lastMinute: number;
  readonly parallel: number;
}

export interface Limiter {
  /**
   * Decides both limits at once: a true sliding window of 60 s and a set of live request ids. A refusal by one limit
   * consumes nothing of the other. A request id that is in already is admitted again without counting.
   */
  enter(account: AccountId, request: RequestId, limits: AccountLimits): LimitDecision | Promise<LimitDecision>;
  /** Gives the parallel place back. Harmless for an id that is not in. */
  leave(account: AccountId, request: RequestId): void;
  /** What of the limits is used now, over all routers that share them. Changes nothing. */
  use(account: AccountId): LimitUse | Promise<LimitUse>;
}
