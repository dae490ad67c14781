/** Writes an answer in the form for its client: event by event, or collected into one body. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import type { GenerationRequest } from "../engines/dialects/dialect.ts";
import type { AnswerSink } from "./canonical-stream.ts";
import type { TokenCounts } from "./usage-count.ts";

export interface AnswerWriter extends AnswerSink {
  /** Returns the text that is ready to be sent, each part once. */
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

const terminator = "data: [DONE]\n\n";

/** Returns functions that write the events of a streamed answer. `object`: the convention's name of its events. */
export function eventText(object: string, { id, created, model }: AnswerEnvelope, includeUsage: boolean) {
  /** The beginning of every event, up to the choice. */
  const head = `data: ${JSON.stringify({ id, object, created, model }).slice(0, -1)},"choices":[`;
  let pending = "";
  return {
    add: (choice: string) => void (pending += `${head}${choice}]}\n\n`),
    takePending: () => {
      const taken = pending;
      pending = "";
      return taken;
    },
    closing: (counts: TokenCounts) =>
      includeUsage ? `${head}],"usage":${JSON.stringify(usageBody(counts))}}\n\n${terminator}` : terminator,
  };
}

/**
 * Returns how a completion takes the parts of an answer. A completion has no reasoning, so the engine's reasoning
 * becomes text.
 */
export function completionParts(content: AnswerWriter["content"]) {
  return {
    role() {},
    reasoning: content,
    content,
    toolCall() {
      throw new EngineFault("malformed", "the engine sent a tool call in a completion");
    },
  } satisfies Partial<AnswerWriter>;
}

export function usageBody({ promptTokens, completionTokens, cachedTokens, reasoningTokens }: TokenCounts) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cachedTokens !== undefined && { prompt_tokens_details: { cached_tokens: cachedTokens } }),
    ...(reasoningTokens !== undefined && { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}
