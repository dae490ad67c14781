/**
 * Limits how long a slow reader delays its data. Time runs while data waits for the reader, and each byte that it takes
 * returns some time. A reader that takes nothing is given up after `msMax`. A reader below the floor is given up later,
 * and a reader above it never.
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
  /** When time began to run. Undefined while no data waits. */
  #sinceMs: number | undefined;
  #timer: Timer | undefined;

  constructor(options: PatienceOptions) {
    this.#options = options;
    this.#leftMs = options.msMax;
  }

  /** Data waits for the reader from now on. */
  start(): void {
    this.#sinceMs ??= this.#options.clock.monotonicMs();
    this.#timer ??= this.#options.clock.after(this.#leftMs, this.#look);
  }

  /** The reader has taken this many bytes. */
  took(bytes: number): void {
    const { msMax, floorBytesPerSecond } = this.#options;
    this.#spend();
    this.#leftMs = Math.min(msMax, this.#leftMs + (bytes * 1_000) / floorBytesPerSecond);
  }

  /** No data waits for now. */
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

  /** The timer does not move with each byte. If time is left when it fires, it starts again. */
  readonly #look = (): void => {
    this.#timer = undefined;
    this.#spend();
    if (this.#leftMs > 0) this.start();
    else this.#options.giveUp();
  };
}
