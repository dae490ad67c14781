/** Runs attacks in rounds. Each round opens connections again that the guards have closed. */
import { setTimeout as sleep } from "node:timers/promises";

/** Longer than the router's longest timeout for slow clients, which is 30 s. */
const roundMs = 45_000;

/**
 * Runs `round` at least once, and again until the signal aborts. Each round gets its own signal, which aborts at the
 * round's end.
 */
export async function inRounds(signal: AbortSignal, round: (over: AbortSignal) => Promise<void>): Promise<void> {
  do await round(AbortSignal.any([signal, AbortSignal.timeout(roundMs)]));
  while (!signal.aborted);
}

/** Resolves when the signal aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  await sleep(2 ** 31 - 1, undefined, { signal }).catch(() => {});
}
