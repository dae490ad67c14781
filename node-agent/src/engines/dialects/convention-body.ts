/** Request bodies in the OpenAI convention, the base of every dialect's bodies. Undefined fields are not sent. */
import { rawJson } from "@weiche/shared/http/kept-json.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { ChatRequest, CompletionRequest, GenerationRequest, Thinking } from "./dialect.ts";

/** OpenAI's default of `max_tokens` for completions; engines have other defaults. */
const completionTokensDefault = 16;

export function chatBody(request: ChatRequest) {
  const { tools, toolChoice, oneCall, logprobs } = request;
  const named = typeof toolChoice === "object";
  return {
    ...generation(request),
    messages: request.messages,
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs }),
    ...(tools.length > 0 && {
      tools,
      tool_choice: named ? { type: "function", function: { name: toolChoice.name } } : toolChoice,
      ...(oneCall && { parallel_tool_calls: false }),
    }),
    response_format: request.responseFormat,
    ...thinkingFields(request.thinking),
  };
}

export function completionBody(request: CompletionRequest) {
  return {
    ...generation(request),
    prompt: request.prompt,
    max_tokens: request.maxTokens ?? completionTokensDefault,
    logprobs: request.logprobs,
  };
}

export function embeddingBody(model: ModelId, texts: readonly string[]) {
  return { model, input: texts, encoding_format: "float" };
}

function generation(request: GenerationRequest) {
  const { seed } = request.sampling;
  return {
    model: request.model,
    max_tokens: request.maxTokens,
    ...request.sampling,
    seed: seed === undefined ? undefined : rawJson(String(seed)),
    n: request.choices,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
}

/** Sends both spellings of the template argument, because models' templates differ in which one they know. */
function thinkingFields({ on, effort, templateSwitch }: Thinking) {
  return {
    reasoning_effort: effort,
    ...(templateSwitch && { chat_template_kwargs: { enable_thinking: on, thinking: on } }),
  };
}
