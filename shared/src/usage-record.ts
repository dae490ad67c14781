/** The usage of one attempt of a request. The agent writes it before the last byte of the answer is sent. */
import type { Millicredits } from "./credits.ts";
import type { AccountId, KeyId, ModelId, RequestId, UserId } from "./ids.ts";

/**
 * `engine`: the engine reported the counts. `counted`: the agent counted the stream, because it was cut off or the
 * engine's counts are wrong.
 */
export type UsageSource = "engine" | "counted";

/**
 * `finished`: the end of the stream arrived. `client-ended` and `limit-ended` cost the tokens that were generated until
 * then. A limit is the time limit of requests, or text of the model that the engine cannot continue. `broken`: the
 * service failed, so the attempt costs nothing and its counts are 0. `void`: the client did not get this attempt's
 * answer, so it costs nothing and its counts are 0. A `void` replaces any other record of the attempt, in whatever
 * order they come.
 */
export type RequestOutcome = "finished" | "client-ended" | "limit-ended" | "broken" | "void";

/** One try of a request on one node. */
export interface Attempt {
  readonly requestId: RequestId;
  /** Counts from 1. */
  readonly attempt: number;
}

/**
 * The payer. The router sends it with the request, and the agent copies it into the record, because it knows no
 * accounts.
 */
export interface BillingIdentity {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
  /** Millicredits per token at the time when the request was accepted. */
  readonly factor: Millicredits;
}

/** The router's signature, for one node, over an attempt's payer and maximum cost. The agent only copies it. */
export interface BillingGrant extends BillingIdentity {
  /** Maximum number of tokens of the attempt, prompt and answers together. */
  readonly tokensMax: number;
  /** The signature, in base64url. Empty in records of earlier versions. */
  readonly grant: string;
}

/** A usage record, identified by request id and attempt. */
export interface UsageRecord extends BillingGrant, Attempt {
  readonly model: ModelId;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens?: number;
  readonly cachedTokens?: number;
  /** How many of the tokens were estimated. Undefined if none were. */
  readonly estimatedTokens?: number;
  readonly source: UsageSource;
  readonly outcome: RequestOutcome;
  readonly durationMs: number;
  readonly firstTokenMs?: number;
}
