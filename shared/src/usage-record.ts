/** The usage of one attempt of a request. The agent writes it before the last byte of the answer is sent. */
import type { Millicredits } from "./credits.ts";
import type { AccountId, KeyId, ModelId, RequestId, UserId } from "./ids.ts";

/** `engine`: reported by the engine; `counted`: counted from the stream, because it was cut off or its count is wrong. */
export type UsageSource = "engine" | "counted";

/**
 * `finished`: the end of the stream was received. `client-ended`, `limit-ended`: costs what was generated until then. A
 * limit is the time limit of requests, or what the engine cannot continue because of the model's own text. `broken`: we
 * failed; costs nothing, and its counts are 0. `void`: the client did not get this attempt's answer; costs nothing, its
 * counts are 0, and it replaces any other record of the attempt, whichever comes first.
 */
export type RequestOutcome = "finished" | "client-ended" | "limit-ended" | "broken" | "void";

/** One try of a request on one node. */
export interface Attempt {
  readonly requestId: RequestId;
  /** Counts from 1. */
  readonly attempt: number;
}

/** The payer. The router sends it with the request and the agent repeats it in the record: it has no account state. */
export interface BillingIdentity {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
  /** Millicredits per token at the time when the request was accepted. */
  readonly factor: Millicredits;
}

/** The router's signature, for one node, over who pays for an attempt and how much at most. The agent only repeats it. */
export interface BillingGrant extends BillingIdentity {
  /** The most tokens, prompt and answers together, that the attempt may cost. */
  readonly tokensMax: number;
  /** The signature, in base64url. Empty in records from before routers signed. */
  readonly grant: string;
}

/** Identified by request id and attempt. */
export interface UsageRecord extends BillingGrant, Attempt {
  readonly model: ModelId;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens?: number;
  readonly cachedTokens?: number;
  /** Part of both counts that nobody counted and that was estimated. Absent: nothing was. */
  readonly estimatedTokens?: number;
  readonly source: UsageSource;
  readonly outcome: RequestOutcome;
  readonly durationMs: number;
  readonly firstTokenMs?: number;
}
