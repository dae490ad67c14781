/** What one attempt of one request used. Written by the agent before the last byte of the answer leaves. */
import type { Millicredits } from "./credits.ts";
import type { AccountId, KeyId, ModelId, RequestId, UserId } from "./ids.ts";

/** `engine`: the engine's own usage; `counted`: counted from the stream because it was cut off. There are no estimates. */
export type UsageSource = "engine" | "counted";

/**
 * `finished`: the terminator was received. `client-ended`, `limit-ended`: costs what was generated until then.
 * `broken`: we failed; costs nothing, and its counts are 0.
 */
export type RequestOutcome = "finished" | "client-ended" | "limit-ended" | "broken";

/** Who pays, told by the router with the request and echoed in the record; the agent keeps no account state. */
export interface BillingIdentity {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
  /** Millicredits per token, valid when the request was accepted. */
  readonly factor: Millicredits;
}

export interface UsageRecord extends BillingIdentity {
  readonly requestId: RequestId;
  /** From 1. Identity of a record: request id and attempt. */
  readonly attempt: number;
  readonly model: ModelId;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens?: number;
  readonly cachedTokens?: number;
  readonly source: UsageSource;
  readonly outcome: RequestOutcome;
  readonly durationMs: number;
  readonly firstTokenMs?: number;
}
