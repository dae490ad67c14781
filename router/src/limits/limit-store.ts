/** Counts the limits of accounts for several routers: in Valkey or Redis 7. Every call may fail, or take for ever. */
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";
import type { AccountLimits, LimitUse } from "./limiter.ts";

export type StoreDecision =
  | { readonly admitted: true }
  /** `freeInMs`: when the minute has room again. */
  | { readonly admitted: false; readonly limit: "minute"; readonly freeInMs: number }
  | { readonly admitted: false; readonly limit: "parallel" };

export interface LimitStore extends AsyncDisposable {
  /** As `Limiter.enter`. The place is leased: it ends 15 s after the last `renew`. */
  enter(account: AccountId, request: RequestId, limits: AccountLimits): Promise<StoreDecision>;
  /**
   * As `MemoryLimiter.tell`, for the requests of all routers; undefined: too many were told a time before.
   * `durationsMs`: how long requests of the account take, in ascending order.
   */
  tell(
    account: AccountId,
    request: RequestId,
    limits: AccountLimits,
    durationsMs: readonly number[],
  ): Promise<number | undefined>;
  leave(account: AccountId, request: RequestId): Promise<unknown>;
  /** Says which requests of this router hold a place: their leases are renewed, and all others of this router end. */
  renew(account: AccountId, requests: Iterable<RequestId>): Promise<unknown>;
  use(account: AccountId): Promise<LimitUse>;
  /** Calls back when a connection to the store ends, also while nothing is asked. */
  onLost(callback: (why: Error) => void): void;
}

/** The store as operators look at it. */
export interface LimitStoreView {
  readonly address: string;
  /** Why it does not answer, and since when, in wall time in ms. Absent: it does. */
  readonly down: () => { readonly sinceMs: number; readonly reason: string } | undefined;
}
