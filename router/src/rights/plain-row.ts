/** Converts rows of the database into members of JSON replies. */
import { formatCredits, type Millicredits } from "@weiche/shared/credits.ts";

type Plain<T> = T extends Temporal.Instant | bigint ? string : T;

type PlainRow<R extends object> = { readonly [Name in keyof R]: Plain<R[Name]> };

/** Converts instants to ISO 8601 text, and bigints, which are millicredits, to credits with three decimal places. */
export function plainRow<R extends object>(row: R): PlainRow<R> {
  const plain = Object.entries(row).map(([name, value]: [string, unknown]) => {
    if (typeof value === "bigint") return [name, formatCredits(value as Millicredits)];
    return [name, value instanceof Temporal.Instant ? value.toString() : value];
  });
  return Object.fromEntries(plain) as PlainRow<R>;
}
