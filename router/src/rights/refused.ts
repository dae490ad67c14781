/** A wish that is refused. The message is for the person who asked, a phrase without a full stop, and never quotes a secret. */
export type RefusalKind =
  | "invalid"
  | "login_required"
  | "login_failed"
  | "totp_required"
  | "forbidden"
  | "wrong_origin"
  | "not_found"
  | "conflict"
  | "price_changed"
  | "too_large"
  | "unsupported_media_type"
  | "too_many_attempts"
  | "too_many_requests";

/** One thing that is wrong: where (`body.member` without the `body`), and a word for what. */
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

/** Of what is counted in the database, such as guesses: nothing was looked at. */
export function tooManyAttempts(waitMs: number): Refused {
  const retryAfterSeconds = waitMs / 1000;
  return new Refused("too_many_attempts", "too many attempts: wait a while before the next one", { retryAfterSeconds });
}

/** The row, or the refusal that names what is missing. */
export function found<T>(row: T | undefined, what: string, id: string): T {
  if (row === undefined) throw new Refused("not_found", `there is no ${what} ${id}`);
  return row;
}
