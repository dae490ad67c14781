import { ApiError, apiErrors } from "../errors.ts";

/** Tokens of an input; undefined if nobody counted them. */
export type InputTokens = number | { readonly atLeast: number } | undefined;

export interface Asked {
  /** The word for the input of the request, which most endpoints have as a parameter. */
  readonly input: string;
  readonly maxTokens: number | undefined;
  /** The parameter that is too large. Defaults to the input. */
  readonly param?: string;
}

/**
 * The error of a request that does not fit into the context window. Client libraries recognise an overflow by the code
 * and by this sentence, word for word, and some read its numbers. Those that look for the code look into the text of the
 * exception, in which the client of OpenAI for Python puts nothing but the message since 3.56.
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
