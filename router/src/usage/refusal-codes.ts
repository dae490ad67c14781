/** Codes of refusals, finer than the API's codes, each with its status and advice. */
import type { ApiErrorKind } from "@weiche/shared/errors.ts";

interface RefusalFacts {
  readonly status: number;
  /** The kind of advice. Portal and command turn it into a sentence. */
  readonly advice: string;
}

/** In the API, `key_…`, `user_blocked` and `account_blocked` are `invalid_api_key`; `rate_limit_…` is `rate_limit_exceeded`. */
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
export type RefusalAdvice = (typeof refusalCodes)[RefusalCode]["advice"];

/** Returns the advice for a refusal; undefined for a word without one. */
export function adviceOf(word: string | undefined): RefusalAdvice | undefined {
  return word !== undefined && Object.hasOwn(refusalCodes, word) ? refusalCodes[word as RefusalCode].advice : undefined;
}

/** Codes of refused requests whose key is unknown or was not checked. */
const withoutKey = ["invalid_api_key", "address_limit", "path_not_supported"] as const;

/** Why a request was refused, with or without a known key. */
export type RefusalWord = RefusalCode | (typeof withoutKey)[number];
export const refusalWords: readonly RefusalWord[] = [...withoutKey, ...(Object.keys(refusalCodes) as RefusalCode[])];

/** Codes that the API does not distinguish. */
export type RefusalReason =
  | "key_revoked"
  | "key_expired"
  | "key_blocked_by_limit"
  | "user_blocked"
  | "account_blocked"
  | "rate_limit_minute"
  | "rate_limit_parallel"
  | "too_many_answers"
  /** The JSON Schema of an answer or a tool would cost an engine too much, or no engine accepts a part of it. */
  | "schema_refused"
  | "body_too_slow"
  | "no_room_for_body";
