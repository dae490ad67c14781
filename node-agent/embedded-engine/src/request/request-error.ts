/** The errors that the engine returns. */
import { ApiError } from "@weiche/shared/errors.ts";

/** An error in OpenAI's shape. The message never quotes the client's request. */
export class RequestError extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  /** Further fields of the error object. */
  readonly details: Readonly<Record<string, number>>;

  constructor(
    status: number,
    type: string,
    message: string,
    more: { param?: string; details?: Readonly<Record<string, number>> } = {},
  ) {
    super(message);
    this.status = status;
    this.type = type;
    this.param = more.param ?? null;
    this.details = more.details ?? {};
  }
}

/** Returns undefined for an unexpected error, which is a bug. */
export function asRequestError(error: unknown): RequestError | undefined {
  if (error instanceof ApiError) return invalid(error.message, error.param ?? undefined);
  return error instanceof RequestError ? error : undefined;
}

export function invalid(message: string, param?: string): RequestError {
  return new RequestError(400, "invalid_request_error", message, param === undefined ? {} : { param });
}

/** Returns an error with the same type and fields as llama-server's. */
export function contextExceeded(promptTokens: number, contextTokens: number, what = "the prompt"): RequestError {
  const message = `${what} has ${promptTokens} tokens, which exceeds the available context size of ${contextTokens} tokens`;
  return new RequestError(400, "exceed_context_size_error", message, {
    details: { n_prompt_tokens: promptTokens, n_ctx: contextTokens },
  });
}

export function errorBody(error: RequestError) {
  const { message, type, param, status, details } = error;
  return { error: { message, type, param, code: String(status), ...details } };
}
