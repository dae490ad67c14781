/** The shape of every language: the names of the English texts, and functions with the same arguments. */
import type { en } from "./en.ts";

/** The same names with other texts. */
export type Shape<T> = {
  readonly [Name in keyof T]: T[Name] extends string
    ? string
    : T[Name] extends (...args: infer Args) => string
      ? (...args: Args) => string
      : Shape<T[Name]>;
};
export type Messages = Shape<typeof en>;
