/** A wish that the business refuses. The message is for the person who asked and never quotes a secret. */
export type RefusalKind = "not_found" | "invalid" | "forbidden" | "conflict" | "price_changed" | "too_many_attempts";

export class Refused extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Of guesses: nothing was looked at. */
export class TooManyAttempts extends Refused {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super("too_many_attempts", "too many attempts: wait a while before the next one");
    this.waitMs = waitMs;
  }
}

/** The row, or the refusal that names what is missing. */
export function found<T>(row: T | undefined, what: string, id: string): T {
  if (row === undefined) throw new Refused("not_found", `there is no ${what} ${id}`);
  return row;
}
