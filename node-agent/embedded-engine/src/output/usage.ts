/** Token counts in OpenAI's shape. */
import type { Counts } from "./answer.ts";

/** Returns the usage of a request. Its choices share its prompts, which count once. */
export function usageOf(promptTokens: number, choices: readonly Readonly<Counts>[]) {
  const sum = (of: (counts: Readonly<Counts>) => number) => choices.reduce((total, counts) => total + of(counts), 0);
  const completionTokens = sum((counts) => counts.completionTokens);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: choices[0]?.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: sum((counts) => counts.reasoningTokens) },
  };
}
