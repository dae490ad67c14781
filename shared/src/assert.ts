/** Assertions about our own code. They stay on in production: a broken invariant must not bill or serve on. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}

/** Call it at the end of an exhaustive `switch`. */
export function unreachable(value: never): never {
  throw new Error(`assertion failed: unexpected ${JSON.stringify(value)}`);
}
