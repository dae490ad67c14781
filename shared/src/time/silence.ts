/** Detects that a peer that sends regularly has fallen silent. */
import type { Clock, Timer } from "./clock.ts";
import { forgivenMsMax } from "./loop-clock.ts";

/** Both ends of a link send something each second; a silent peer must be noticed within 5 s. */
export const linkSilenceMsMax = 3_800;
/**
 * Options for gRPC, whose keep-alive mistakes a stall of our own event loop for a silent peer: it only closes
 * connections whose link has ended, for which there is time. Each connection asks so often, also one with a link.
 */
export const linkKeepAlive = {
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 2 * forgivenMsMax,
};
/** Data of the peer may be waiting to be read: it gets a turn of the event loop. */
const graceMs = 200;

export class Silence {
  readonly #clock: Clock;
  readonly #msMax: number;
  readonly #fallen: () => void;
  #heardAtMs = 0;
  #timer: Timer | undefined;

  /** `fallen`: called once, after the peer was heard at least once. */
  constructor(clock: Clock, msMax: number, fallen: () => void) {
    this.#clock = clock;
    this.#msMax = msMax;
    this.#fallen = fallen;
  }

  heard(): void {
    this.#heardAtMs = this.#clock.monotonicMs();
    this.#timer ??= this.#clock.after(this.#msMax, () => this.#check(this.#msMax + graceMs));
  }

  cancel(): void {
    this.#timer?.cancel();
  }

  #check(msMax: number): void {
    const leftMs = this.#heardAtMs + msMax - this.#clock.monotonicMs();
    if (leftMs <= 0) return this.#fallen();
    this.#timer = this.#clock.after(leftMs, () => this.#check(msMax));
  }
}
