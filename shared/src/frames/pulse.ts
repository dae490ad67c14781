/**
 * Looks each second whether the peer lives. The agent's end asks each time, by a PING; the router's end takes the question
 * for a sign of life, and asks only when a stream is open or nothing came.
 */
import type { Clock, Timer } from "../time/clock.ts";

interface Pulse {
  /** Whether anything came since this was called last. */
  hasHeard(): boolean;
  /** Whether the peer asks each second, so that this end need not. */
  isAsked(): boolean;
  /** Asks for a sign of life. */
  ask(): void;
  /** Called once, at most. */
  lost(): void;
}

const lookEveryMs = 1_000;
/**
 * Looks in a row before which nothing came: 3 to 4 s. A stall of our own counts as one of them, since the next look is
 * counted from its end and what waits to be read is read in between.
 */
const silentLooksMax = 3;

/** Asks at once, and looks until it is cancelled or the peer is lost. */
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
