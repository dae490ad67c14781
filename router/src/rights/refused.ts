/** Why a request is refused. The message is for the requester: a phrase without a full stop that quotes no secret. */
export type RefusalKind =
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

/** One mistake in a request. `param`: the path of the field, without `body.`. `code`: what is wrong, in a word. */
export interface RefusalDetail {
  readonly param: string;
  readonly code: string;
}

export class Refused extends Error {
  readonly kind: RefusalKind;
  readonly details: readonly RefusalDetail[];
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: RefusalKind,
    message: string,
    more: { readonly details?: readonly RefusalDetail[]; readonly retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.kind = kind;
    this.details = more.details ?? [];
    this.retryAfterSeconds = more.retryAfterSeconds;
  }
}

/** Answers people of an account that the operator has blocked. */
export function accountBlocked(): Refused {
  return new Refused("account_blocked", "this account is blocked. The operator of this service can change that");
}

/** Refused before a guess was checked: the attempts before it are counted in the database. */
export function tooManyAttempts(waitMs: number): Refused {
  const retryAfterSeconds = waitMs / 1000;
  return new Refused("too_many_attempts", "too many attempts: wait a while before the next one", { retryAfterSeconds });
}

/** Returns the row; throws `Refused` ("not_found") if there is none. */
export function found<T>(row: T | undefined, what: string, id: string): T {
  if (row === undefined) throw new Refused("not_found", `there is no ${what} ${id}`);
  return row;
}
