/** Sends a sign of life each second, and detects that the peer has sent none. */
import type { Clock, Timer } from "../time/clock.ts";

export interface Pulse {
  /** Whether anything came since the last beat. */
  hasHeard(): boolean;
  beat(): void;
  /** Called once, at most. */
  lost(): void;
}

const beatEveryMs = 1_000;
/**
 * Beats in a row before which nothing came: 3 to 4 s. A stall of our own counts as one of them, since the next beat is
 * counted from its end and what waits to be read is read in between.
 */
const silentBeatsMax = 3;

/** Beats at once, and until it is cancelled or the peer is lost. */
export function watchPulse(clock: Clock, pulse: Pulse): Timer {
  let silentBeats = 0;
  pulse.beat();
  let timer = clock.after(beatEveryMs, beat);
  return { cancel: () => timer.cancel() };

  function beat(): void {
    silentBeats = pulse.hasHeard() ? 0 : silentBeats + 1;
    if (silentBeats === silentBeatsMax) return pulse.lost();
    pulse.beat();
    timer = clock.after(beatEveryMs, beat);
  }
}
