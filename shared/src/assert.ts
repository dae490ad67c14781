/**
 * Assertions about our own code. They stay on in production, so that no request is served or billed after a broken
 * invariant.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}

/** Ends an exhaustive `switch`. */
export function unreachable(value: never): never {
  throw new Error(`assertion failed: unexpected ${JSON.stringify(value)}`);
}
