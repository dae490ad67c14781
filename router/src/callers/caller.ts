/** The identity and limits behind a request's API key. */
import type { AccountId, KeyId, ModelId, UserId } from "@weiche/shared/ids.ts";

export interface Identity {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
}

export interface Caller extends Identity {
  /** Intersection of the user's and the key's restriction; undefined: every model. */
  readonly allowedModels: ReadonlySet<ModelId> | undefined;
  readonly requestsPerMinute: number;
  readonly parallelRequests: number;
}

/** Why a key is refused, in the order of the API's conformance page. The kinds of 401 differ in their message only. */
export type KeyRefusal =
  | {
      readonly refused: "invalid_api_key";
      readonly why: "unknown" | "revoked" | "expired" | "blocked-by-limit" | "user-blocked" | "account-blocked";
      /** Absent for an unknown key. */
      readonly of?: Identity;
    }
  | { readonly refused: "no_package"; readonly of?: Identity }
  /** The model list stays available to this caller. */
  | { readonly refused: "insufficient_quota"; readonly caller: Caller };

/** Looks a key up in memory; never waits for the database on a known key. */
export interface KeyCache {
  /**
   * `key`: the value of the bearer header. Resolves at once when the key is cached. `atMs`: when the request was
   * accepted (default: now); it decides on the billing period.
   */
  find(key: string, atMs?: number): Caller | KeyRefusal | Promise<Caller | KeyRefusal>;
}
