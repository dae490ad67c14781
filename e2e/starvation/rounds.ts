/** Attacks that last: what the guards close meanwhile is opened again in the next round. */
import { setTimeout as sleep } from "node:timers/promises";

/** Longer than any time after which a router ends what is too slow, which is 30 s. */
const roundMs = 45_000;

/** Runs `round` at least once, and again until the signal aborts. Each has a signal of its own, which says that it is over. */
export async function inRounds(signal: AbortSignal, round: (over: AbortSignal) => Promise<void>): Promise<void> {
  do await round(AbortSignal.any([signal, AbortSignal.timeout(roundMs)]));
  while (!signal.aborted);
}

/** Resolves when the signal aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  await sleep(2 ** 31 - 1, undefined, { signal }).catch(() => {});
}
