/**
 * Limits log lines of one kind and peer to a few per minute, so that a peer that repeats a fault cannot fill the disk.
 * The minute's last line has the number of omitted lines.
 */
import type { Clock, Timer } from "../time/clock.ts";

/** Lines of one kind and peer per minute, including the last one. */
export const linesMax = 5;
const minuteMs = 60_000;
/** Peers of one kind that are counted separately. All other peers share one count. */
const peersMax = 100;

/** Fields for the line. `leftOut`: number of similar lines that were not written. */
interface LeftOut {
  readonly leftOut?: number;
}

type Write = (leftOut: LeftOut) => void;

interface Minute {
  readonly timer: Timer;
  written: number;
  leftOut: number;
  /** Writes the newest omitted line. */
  last: Write | undefined;
}

export class FewLines implements Disposable {
  readonly #clock: Clock;
  readonly #kinds = new Map<string, Map<string, Minute>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Calls `write` now, at the end of the minute, or never. `peer`: the peer that caused the line, maybe a stranger's
   * text.
   */
  say(kind: string, peer: string, write: Write): void {
    const peers = this.#kinds.get(kind) ?? new Map<string, Minute>();
    this.#kinds.set(kind, peers);
    const key = peers.has(peer) || peers.size < peersMax ? peer : "";
    const minute = peers.get(key) ?? this.#begin(peers, key);
    if (minute.written < linesMax - 1) {
      minute.written++;
      return write({});
    }
    if (minute.last) minute.leftOut++;
    minute.last = write;
  }

  /** Writes the lines that wait. */
  [Symbol.dispose](): void {
    for (const peers of this.#kinds.values()) for (const key of peers.keys()) this.#end(peers, key);
  }

  #begin(peers: Map<string, Minute>, key: string): Minute {
    const timer = this.#clock.after(minuteMs, () => this.#end(peers, key));
    const minute = { timer, written: 0, leftOut: 0, last: undefined };
    peers.set(key, minute);
    return minute;
  }

  #end(peers: Map<string, Minute>, key: string): void {
    const { timer, last, leftOut } = peers.get(key)!;
    timer.cancel();
    peers.delete(key);
    last?.(leftOut > 0 ? { leftOut } : {});
  }
}
