import { ApiError, apiErrors } from "../errors.ts";

/** Tokens of an input. Undefined if they were not counted. */
type InputTokens = number | { readonly atLeast: number } | undefined;

interface Asked {
  /** The word for the request's input. Most endpoints have a parameter of this name. */
  readonly input: string;
  readonly maxTokens: number | undefined;
  /** The parameter that is too large. Defaults to the input. */
  readonly param?: string;
}

/**
 * Makes the error of a request that exceeds the context window. Client libraries recognise it by the code or by this
 * exact sentence, and some read its numbers. The sentence contains the code, because some search the exception's text,
 * which is only the message since version 3.56 of OpenAI's Python client.
 */
export function contextExceeded(windowTokens: number, inputTokens: InputTokens, asked: Asked): ApiError {
  const { input, maxTokens = 0, param = input } = asked;
  const isExact = typeof inputTokens === "number";
  const tokens = isExact ? inputTokens : (inputTokens?.atLeast ?? windowTokens + 1);
  const count = (number: number) => (isExact ? `${number}` : `at least ${number}`);
  return new ApiError(
    "context_window_exceeded",
    `This model's maximum context length is ${windowTokens} tokens. However, you requested ${count(tokens + maxTokens)} ` +
      `tokens (${count(tokens)} in the ${input}, ${maxTokens} in the completion). ` +
      `Please reduce the length of the ${input}${maxTokens > 0 ? " or completion" : ""}. (${apiErrors.context_window_exceeded.code})`,
    { param },
  );
}
