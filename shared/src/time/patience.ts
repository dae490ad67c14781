/**
 * How long a slow reader is waited for. Time runs while something waits for the reader, and each byte that it takes gives
 * some of it back. A reader that takes nothing is given up after `msMax`, one below the floor later, one above it never.
 */
import type { Clock, Timer } from "./clock.ts";

interface PatienceOptions {
  readonly clock: Clock;
  readonly msMax: number;
  readonly floorBytesPerSecond: number;
  readonly giveUp: () => void;
}

export class Patience {
  readonly #options: PatienceOptions;
  #leftMs: number;
  /** Since when time runs. Undefined: nothing waits. */
  #sinceMs: number | undefined;
  #timer: Timer | undefined;

  constructor(options: PatienceOptions) {
    this.#options = options;
    this.#leftMs = options.msMax;
  }

  /** Something waits for the reader from now on. */
  start(): void {
    this.#sinceMs ??= this.#options.clock.monotonicMs();
    this.#timer ??= this.#options.clock.after(this.#leftMs, this.#look);
  }

  /** The reader has taken so many bytes. */
  took(bytes: number): void {
    const { msMax, floorBytesPerSecond } = this.#options;
    this.#spend();
    this.#leftMs = Math.min(msMax, this.#leftMs + (bytes * 1_000) / floorBytesPerSecond);
  }

  /** Nothing waits for now. */
  stop(): void {
    this.#spend();
    this.#sinceMs = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #spend(): void {
    if (this.#sinceMs === undefined) return;
    const nowMs = this.#options.clock.monotonicMs();
    this.#leftMs -= nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
  }

  /** The timer is not moved with each byte: it looks again when there is time left. */
  readonly #look = (): void => {
    this.#timer = undefined;
    this.#spend();
    if (this.#leftMs > 0) this.start();
    else this.#options.giveUp();
  };
}
