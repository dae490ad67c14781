/**
 * All errors that a client of the API can get. Router and agent both throw them. Any other error is a bug and becomes
 * `internal`. `code` is the code on the API's conformance page, or otherwise the status as a string.
 */
export const apiErrors = {
  invalid_request: { status: 400, type: "invalid_request_error", code: "400" },
  context_window_exceeded: { status: 400, type: "ContextWindowExceededError", code: "context_length_exceeded" },
  invalid_api_key: { status: 401, type: "authentication_error", code: "401" },
  no_package: { status: 403, type: "permission_error", code: "no_package" },
  key_model_access_denied: { status: 403, type: "key_model_access_denied", code: "403" },
  insufficient_quota: { status: 429, type: "insufficient_quota", code: "insufficient_quota" },
  rate_limit_exceeded: { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" },
  internal: { status: 500, type: "server_error", code: "500" },
  engine_died: { status: 500, type: "server_error", code: "engine_died" },
  request_barred: { status: 500, type: "server_error", code: "request_barred" },
  model_switching: { status: 503, type: "service_unavailable", code: "model_switching" },
  model_unavailable: { status: 503, type: "service_unavailable", code: "model_unavailable" },
  overloaded: { status: 503, type: "service_unavailable", code: "overloaded" },
  no_node_available: { status: 503, type: "service_unavailable", code: "no_node_available" },
  maintenance: { status: 503, type: "service_unavailable", code: "maintenance" },
  timeout: { status: 504, type: "server_error", code: "timeout" },
} as const satisfies Record<string, { status: number; type: string; code: string }>;

export type ApiErrorKind = keyof typeof apiErrors;

/**
 * An expected error. `message` is shown to the client and not logged. It quotes nothing that the client sent, except
 * plain names of tools and properties whose schema costs too much.
 */
export class ApiError extends Error {
  readonly kind: ApiErrorKind;
  readonly param: string | null;
  readonly retryAfterSeconds: number | undefined;
  /** The precise reason, as one word for metrics. Clients get only the message. */
  readonly reason: string | undefined;

  constructor(
    kind: ApiErrorKind,
    message: string,
    more: { param?: string | null; retryAfterSeconds?: number; reason?: string } = {},
  ) {
    super(message);
    this.kind = kind;
    this.param = more.param ?? null;
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.reason = more.reason;
  }

  get status(): number {
    return apiErrors[this.kind].status;
  }
}

/** Makes a 400 for one parameter of a request. `param` is empty for the whole body. */
export function invalid(param: string, what: string): ApiError {
  return param === ""
    ? new ApiError("invalid_request", `The body ${what}.`)
    : new ApiError("invalid_request", `Invalid '${param}': ${what}.`, { param });
}

export type ErrorBody = ReturnType<typeof errorBody>;

export function errorBody(error: ApiError) {
  const { type, code }: { type: string; code: string } = apiErrors[error.kind];
  return { error: { message: error.message, type, param: error.param, code } };
}

/** Returns whether the same request may succeed later without a change by anyone. */
export function mayRetry(kind: ApiErrorKind): boolean {
  if (kind === "request_barred") return false;
  return kind === "rate_limit_exceeded" || apiErrors[kind].status >= 500;
}

/** Returns whether OpenAI clients retry after this status by themselves, unless `x-should-retry` forbids it. */
function isTriedAgain(status: number): boolean {
  return status === 429 || status >= 500;
}

/** The seconds that `retry-after` names: whole ones, at least 1. */
export function shownRetrySeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

/** Returns an error's headers: `retry-after` and `x-should-retry`. */
export function errorHeaders(error: ApiError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.retryAfterSeconds !== undefined)
    headers["retry-after"] = String(shownRetrySeconds(error.retryAfterSeconds));
  if (isTriedAgain(error.status) && !mayRetry(error.kind)) headers["x-should-retry"] = "false";
  return headers;
}

/** Returns an `ApiError` unchanged, and any other error as `internal` without its text. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError("internal", "Internal error.");
}
