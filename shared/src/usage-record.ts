/** What one attempt of one request used. Written by the agent before the last byte of the answer leaves. */
import type { Millicredits } from "./credits.ts";
import type { AccountId, KeyId, ModelId, RequestId, UserId } from "./ids.ts";

/** `engine`: the engine's own usage; `counted`: counted from the stream because it was cut off. There are no estimates. */
export type UsageSource = "engine" | "counted";

/**
 * `finished`: the terminator was received. `client-ended`, `limit-ended`: costs what was generated until then.
 * `broken`: we failed; costs nothing, and its counts are 0. `void`: the client did not get this attempt's answer. It costs
 * nothing, its counts are 0, and it takes the place of any other record of the attempt, whichever comes first.
 */
export type RequestOutcome = "finished" | "client-ended" | "limit-ended" | "broken" | "void";

/** One try of a request at one node. */
export interface Attempt {
  readonly requestId: RequestId;
  /** From 1. */
  readonly attempt: number;
}

/** Who pays, told by the router with the request and echoed in the record; the agent keeps no account state. */
export interface BillingIdentity {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
  /** Millicredits per token, valid when the request was accepted. */
  readonly factor: Millicredits;
}

/** What one attempt may be billed to and how much, as the router signed it for one node. The agent only repeats it. */
export interface BillingGrant extends BillingIdentity {
  /** The most tokens, prompt and answers together, that the attempt may cost. */
  readonly tokensMax: number;
  /** The signature, in base64url. Empty in a record that an agent wrote before routers signed. */
  readonly grant: string;
}

/** Identity of a record: request id and attempt. */
export interface UsageRecord extends BillingGrant, Attempt {
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
