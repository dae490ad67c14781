/**
 * Checks each second whether the peer is alive. The agent's end sends a PING each time. For the router's end, that PING
 * is a sign of life. It sends its own PING only while a stream is open, or if nothing came.
 */
import type { Clock, Timer } from "../time/clock.ts";

interface Pulse {
  /** Returns whether anything came since the last call. */
  hasHeard(): boolean;
  /** Returns whether the peer sends a PING each second, so that this end need not. */
  isAsked(): boolean;
  /** Sends a PING. */
  ask(): void;
  /** Called at most once. */
  lost(): void;
}

const lookEveryMs = 1_000;
/**
 * Number of consecutive checks without data before the peer is lost, which takes 3 to 4 s. A stall of our own event
 * loop counts as one check, because waiting data is read before the next.
 */
const silentLooksMax = 3;

/** Sends a PING at once, and checks until the timer is cancelled or the peer is lost. */
export function watchPulse(clock: Clock, pulse: Pulse): Timer {
  let silentLooks = 0;
  pulse.ask();
  let timer = clock.after(lookEveryMs, look);
  return { cancel: () => timer.cancel() };

  function look(): void {
    silentLooks = pulse.hasHeard() ? 0 : silentLooks + 1;
    if (silentLooks === silentLooksMax) return pulse.lost();
    if (silentLooks > 0 || !pulse.isAsked()) pulse.ask();
    timer = clock.after(lookEveryMs, look);
  }
}
