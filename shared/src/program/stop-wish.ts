/** Ctrl-C as it arrives: under npm one key press comes twice, from the terminal and from npm, which hands it on. */
import type { Clock } from "../time/clock.ts";

/** How far apart the two may be; a person who insists takes longer. */
const samePressMs = 500;

/** To be called at every wish to stop: the first calls `first`, one that comes apart from it `insist`. */
export function stopWish(clock: Clock, first: () => void, insist: () => void): () => void {
  let firstMs: number | undefined;
  return () => {
    if (firstMs === undefined) {
      firstMs = clock.monotonicMs();
      first();
    } else if (clock.monotonicMs() - firstMs >= samePressMs) insist();
  };
}
