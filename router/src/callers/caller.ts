/** The identity and limits behind a request's API key. */
import type { AccountId, KeyId, ModelId, UserId } from "@weiche/shared/ids.ts";

export interface Identity {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
}

export interface Caller extends Identity {
  /** Models that both user and key allow; undefined if neither is restricted. */
  readonly allowedModels: ReadonlySet<ModelId> | undefined;
  readonly requestsPerMinute: number;
  readonly parallelRequests: number;
}

/** Why a key is refused, in the order of the API's conformance page. The kinds of 401 differ only in their message. */
export type KeyRefusal =
  | {
      readonly refused: "invalid_api_key";
      readonly why: "unknown" | "revoked" | "expired" | "blocked-by-limit" | "user-blocked" | "account-blocked";
      /** Undefined for an unknown key. */
      readonly of?: Identity;
    }
  | { readonly refused: "no_package"; readonly of?: Identity }
  /** This caller may still list models. */
  | { readonly refused: "insufficient_quota"; readonly caller: Caller };

/** Finds keys in memory. A cached key is found without the database. */
export interface KeyCache {
  /**
   * Finds the caller of a key; returns without a promise if the key is cached. `atMs`: the time of the request, which
   * determines the billing period. It defaults to now.
   */
  find(key: string, atMs?: number): Caller | KeyRefusal | Promise<Caller | KeyRefusal>;
}
