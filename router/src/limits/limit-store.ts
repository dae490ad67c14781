/** Counts the limits of accounts for several routers: in Valkey or Redis 7. Every call may fail, or take for ever. */
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";
import type { AccountLimits, LimitDecision, LimitUse } from "./limiter.ts";

export interface LimitStore extends AsyncDisposable {
  /** As `Limiter.enter`. The place is leased: it ends 15 s after the last `renew`. */
  enter(account: AccountId, request: RequestId, limits: AccountLimits): Promise<LimitDecision>;
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
