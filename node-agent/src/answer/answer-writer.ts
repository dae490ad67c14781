/** An answer as its client gets it: written event by event, or collected into one body. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { GenerationRequest } from "../engines/dialects/dialect.ts";
import type { AnswerSink } from "./canonical-stream.ts";
import type { TokenCounts } from "./usage-count.ts";

export interface AnswerWriter extends AnswerSink {
  /** What can be sent by now, and is handed out once. */
  takePending(): string;
  /** What comes last, once the answer is whole. */
  closing(counts: TokenCounts): string;
}

/** The same in every chunk of an answer. */
export interface AnswerEnvelope {
  readonly id: string;
  readonly created: number;
  /** The public name. */
  readonly model: ModelId;
}

/** What of a request shapes its answer. */
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
