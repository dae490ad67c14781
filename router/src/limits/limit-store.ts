/** Counts the limits of accounts for several routers in Valkey or Redis 7. Every call may fail or never end. */
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";
import type { AccountLimits, LimitUse } from "./limiter.ts";

export type StoreDecision =
  | { readonly admitted: true }
  /** `freeInMs`: after how many ms the minute has room again. */
  | { readonly admitted: false; readonly limit: "minute"; readonly freeInMs: number }
  | { readonly admitted: false; readonly limit: "parallel" };

export interface LimitStore extends AsyncDisposable {
  /** Decides as `Limiter.enter` does. The place is a lease and ends 15 s after the last `renew`. */
  enter(account: AccountId, request: RequestId, limits: AccountLimits): Promise<StoreDecision>;
  /**
   * Returns a time like `MemoryLimiter.tell`, but for the requests of all routers. Returns undefined if too many
   * requests have a time already. `durationsMs`: how long requests of the account take, in ascending order.
   */
  tell(
    account: AccountId,
    request: RequestId,
    limits: AccountLimits,
    known: { readonly durationsMs: readonly number[]; readonly isRetry: boolean },
  ): Promise<number | undefined>;
  leave(account: AccountId, request: RequestId): Promise<unknown>;
  /**
   * Renews the leases of these requests and ends all other leases of this router. A request that still asks for its place
   * (`false`) gets no lease here, because `enter` would then take it for admitted. `requests` may be called again if the
   * command must be sent again.
   */
  renew(account: AccountId, requests: () => Iterable<readonly [RequestId, isHeld: boolean]>): Promise<unknown>;
  use(account: AccountId): Promise<LimitUse>;
  /** Calls back when a connection to the store ends, also if no call is pending. */
  onLost(callback: (why: Error) => void): void;
}

/** The store as the surface shows it to operators. */
export interface LimitStoreView {
  readonly address: string;
  /** Returns since when (wall time in ms) and why the store does not answer, or undefined if it answers. */
  readonly down: () => { readonly sinceMs: number; readonly reason: string } | undefined;
}
