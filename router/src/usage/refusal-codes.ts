/** The reasons for refusals: finer than the API's codes, each with its status and what helps. */
import type { ApiErrorKind } from "@weiche/shared/errors.ts";

interface RefusalFacts {
  readonly status: number;
  /** A word for what helps; the client has the sentence. */
  readonly advice: string;
}

/** `key_…`, `user_blocked` and `account_blocked`: 401 for an existing key. `rate_limit_…`: the API's code is `rate_limit_exceeded`. */
export const refusalCodes = {
  key_revoked: { status: 401, advice: "use-another-key" },
  key_expired: { status: 401, advice: "use-another-key" },
  key_blocked_by_limit: { status: 401, advice: "raise-limit" },
  user_blocked: { status: 401, advice: "ask-administrator" },
  account_blocked: { status: 401, advice: "ask-operator" },
  no_package: { status: 403, advice: "order-package" },
  insufficient_quota: { status: 429, advice: "larger-package" },
  rate_limit_minute: { status: 429, advice: "slow-down" },
  rate_limit_parallel: { status: 429, advice: "fewer-parallel" },
  too_large: { status: 413, advice: "shorten-request" },
  invalid_request: { status: 400, advice: "correct-request" },
  context_window_exceeded: { status: 400, advice: "shorten-request" },
  too_many_answers: { status: 400, advice: "fewer-answers" },
  schema_refused: { status: 400, advice: "simplify-schema" },
  body_too_slow: { status: 400, advice: "send-faster" },
  key_model_access_denied: { status: 403, advice: "choose-allowed-model" },
  internal: { status: 500, advice: "retry-later" },
  engine_died: { status: 500, advice: "retry-later" },
  request_barred: { status: 500, advice: "correct-request" },
  model_switching: { status: 503, advice: "retry-later" },
  model_unavailable: { status: 503, advice: "retry-later" },
  overloaded: { status: 503, advice: "retry-later" },
  no_room_for_body: { status: 503, advice: "fewer-large" },
  no_node_available: { status: 503, advice: "retry-later" },
  maintenance: { status: 503, advice: "retry-later" },
  timeout: { status: 504, advice: "shorten-request" },
} as const satisfies Record<
  Exclude<ApiErrorKind, "invalid_api_key" | "rate_limit_exceeded"> | RefusalReason | "too_large",
  RefusalFacts
>;

export type RefusalCode = keyof typeof refusalCodes;

/** Refusals of a request whose key is not known, or was not looked at. */
const withoutKey = ["invalid_api_key", "address_limit", "path_not_supported"] as const;

/** Why a request was refused, whether its key is known or not. */
export type RefusalWord = RefusalCode | (typeof withoutKey)[number];
export const refusalWords: readonly RefusalWord[] = [...withoutKey, ...(Object.keys(refusalCodes) as RefusalCode[])];

/** Reasons that the API's codes do not distinguish. */
export type RefusalReason =
  | "key_revoked"
  | "key_expired"
  | "key_blocked_by_limit"
  | "user_blocked"
  | "account_blocked"
  | "rate_limit_minute"
  | "rate_limit_parallel"
  | "too_many_answers"
  /** Of an answer or a tool: it costs an engine too much, or it has a place that no engine takes. */
  | "schema_refused"
  | "body_too_slow"
  | "no_room_for_body";
