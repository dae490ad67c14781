import { ApiError } from "@weiche/shared/errors.ts";

/** The error of a request that does not fit into the context window. `prompt`: its input tokens, or words for them. */
export function contextExceeded(
  window: number,
  prompt: number | string | undefined,
  { input: param, maxTokens }: { readonly input: string; readonly maxTokens: number | undefined },
): ApiError {
  const input = prompt === undefined ? `more than ${window}` : String(prompt);
  const wanted = maxTokens === undefined ? "" : ` and asks for up to ${maxTokens} output tokens`;
  return new ApiError(
    "context_window_exceeded",
    `The request exceeds the context window of this model, which is ${window} tokens: it has ${input} input tokens${wanted}.`,
    { param },
  );
}
