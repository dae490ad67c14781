/** Distinguishes one Ctrl-C from two: under npm, one key press arrives twice, from the terminal and from npm. */
import type { Clock } from "../time/clock.ts";

/** Two signals within this time are one key press. */
const samePressMs = 500;

/** Returns a function to call at each signal. The first signal calls `first`, a later, separate one `insist`. */
export function stopWish(clock: Clock, first: () => void, insist: () => void): () => void {
  let firstMs: number | undefined;
  return () => {
    if (firstMs === undefined) {
      firstMs = clock.monotonicMs();
      first();
    } else if (clock.monotonicMs() - firstMs >= samePressMs) insist();
  };
}
