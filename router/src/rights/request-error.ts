/** Kinds of refusals of requests to the surface. The public API has `ApiError`. */
export type RequestErrorKind =
  | "invalid"
  | "login_required"
  | "login_failed"
  | "totp_required"
  | "account_blocked"
  | "forbidden"
  | "wrong_origin"
  | "not_found"
  | "conflict"
  | "price_changed"
  | "too_large"
  | "unsupported_media_type"
  | "too_many_attempts"
  | "too_many_requests";

/** A mistake in a field of a request. `param`: the field's path without `body.`. `code`: the kind of mistake, in one word. */
export interface FieldError {
  readonly param: string;
  readonly code: string;
}

/** `message` is shown to the requester: a phrase without a full stop and without secrets. */
export class RequestError extends Error {
  readonly kind: RequestErrorKind;
  readonly details: readonly FieldError[];
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: RequestErrorKind,
    message: string,
    more: { readonly details?: readonly FieldError[]; readonly retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.kind = kind;
    this.details = more.details ?? [];
    this.retryAfterSeconds = more.retryAfterSeconds;
  }
}

/** Refuses users of an account that the operator has blocked. */
export function accountBlocked(): RequestError {
  return new RequestError("account_blocked", "this account is blocked. The operator of this service can change that");
}

/** Refuses an attempt because of the attempts counted before it. Its password or code was not checked. */
export function tooManyAttempts(waitMs: number): RequestError {
  const retryAfterSeconds = waitMs / 1000;
  return new RequestError("too_many_attempts", "too many attempts: wait a while before the next one", {
    retryAfterSeconds,
  });
}

/** Returns the row; throws `RequestError` ("not_found") if there is none. */
export function found<T>(row: T | undefined, what: string, id: string): T {
  if (row === undefined) throw new RequestError("not_found", `there is no ${what} ${id}`);
  return row;
}
