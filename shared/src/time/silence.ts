/** Detects that a peer which sends regularly has fallen silent. */
import type { Clock, Timer } from "./clock.ts";
import { forgivenMsMax } from "./loop-clock.ts";

/** Both ends of a link send a message each second. A silent peer must be noticed within 5 s. */
export const linkSilenceMsMax = 3_800;
/**
 * Options for gRPC's keep-alive, which mistakes a stall of our own event loop for a silent peer. It therefore has long
 * times, and only closes connections whose link has ended.
 */
export const linkKeepAlive = {
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 2 * forgivenMsMax,
};
/** Time for one more turn of the event loop, because data of the peer may wait unread. */
const graceMs = 200;

export class Silence {
  readonly #clock: Clock;
  readonly #msMax: number;
  readonly #fallen: () => void;
  #heardAtMs = 0;
  #timer: Timer | undefined;

  /** `fallen` is called at most once, and only after the peer has sent something. */
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
