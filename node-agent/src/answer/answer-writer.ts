/** Writes an answer as its client gets it: event by event, or collected into one body. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { GenerationRequest } from "../engines/dialects/dialect.ts";
import type { AnswerSink } from "./canonical-stream.ts";
import type { TokenCounts } from "./usage-count.ts";

export interface AnswerWriter extends AnswerSink {
  /** Returns what is ready to be sent, each part once. */
  takePending(): string;
  /** Returns the last part of a complete answer. */
  closing(counts: TokenCounts): string;
}

export interface AnswerEnvelope {
  readonly id: string;
  readonly created: number;
  readonly model: ModelId;
}

export type AnswerOptions = Pick<GenerationRequest, "choices" | "logprobs" | "includeUsage">;

export const terminator = "data: [DONE]\n\n";

export function usageBody({ promptTokens, completionTokens, cachedTokens, reasoningTokens }: TokenCounts) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cachedTokens !== undefined && { prompt_tokens_details: { cached_tokens: cachedTokens } }),
    ...(reasoningTokens !== undefined && { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}
