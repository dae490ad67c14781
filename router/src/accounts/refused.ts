/** A wish that the business refuses. The message is for the person who asked and never quotes a secret. */
export type RefusalKind = "not_found" | "invalid" | "forbidden" | "conflict" | "price_changed";

export class Refused extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The row, or the refusal that names what is missing. */
export function found<T>(row: T | undefined, what: string, id: string): T {
  if (row === undefined) throw new Refused("not_found", `there is no ${what} ${id}`);
  return row;
}
