/**
 * Receives a body. Its first megabyte takes nothing from the budget, so that an announced length alone holds no memory.
 * Then room for the whole body is reserved while it arrives fast enough, because a body that has to wait halfway wastes
 * its memory. A slower body returns the room of missing bytes and reserves it in small steps.
 */
import type { IncomingMessage } from "node:http";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { lightBytesMax } from "@weiche/shared/http/json-guard.ts";
import { PageRefusal } from "../../edge/html-pages.ts";
import { ClientGone, type Exchange } from "../exchange.ts";
import { CollectedBody } from "./collected-body.ts";
import { smallBytesMax, type HeldBody } from "./held-body.ts";

export const bodyBytesMax = 20 << 20;

export interface BodyTimes {
  readonly bodyMsMax: number;
  /** Received bytes that extend the deadline by one second. They are also the required pace per second. */
  readonly bytesPerExtraSecond: number;
}

/** How often the pace is checked. */
export const paceSeconds = 5;

export class BodyReceiver {
  readonly whole: Promise<Buffer>;
  readonly #settle = Promise.withResolvers<Buffer>();
  readonly #request: IncomingMessage;
  readonly #exchange: Exchange;
  readonly #held: HeldBody;
  readonly #times: BodyTimes;
  readonly #clock: Clock;
  readonly #bytesMax: number;
  readonly #body: CollectedBody;
  /** Bytes that may be kept. */
  #room = smallBytesMax;
  #isSlow = false;
  #isOver = false;
  /** The start time plus the time that the body waited for room. */
  #startedAtMs: number;
  #deadline: Timer | undefined;
  #pace: Timer | undefined;

  constructor(exchange: Exchange, announced: number | undefined, held: HeldBody, times: BodyTimes, clock: Clock) {
    this.whole = this.#settle.promise;
    this.#request = exchange.request;
    this.#exchange = exchange;
    this.#held = held;
    this.#times = times;
    this.#clock = clock;
    this.#bytesMax = announced ?? bodyBytesMax;
    this.#body = new CollectedBody(announced);
    this.#startedAtMs = clock.monotonicMs();
    this.#checkDeadline();
    this.#request.on("data", this.#take).once("end", this.#end).once("close", this.#close);
  }

  readonly #take = (chunk: Buffer): void => {
    this.#body.add(chunk);
    if (this.#body.bytes > bodyBytesMax) return this.#fail(new PageRefusal("body_too_large"));
    if (this.#body.bytes <= lightBytesMax) return;
    // Without a pause, Node.js reads up to 2 MB of a connection in one turn of the event loop: 140 ms with 40 connections.
    this.#request.pause();
    if (this.#body.bytes <= this.#room) setImmediate(() => this.#request.resume());
    else void this.#waitForRoom();
  };

  async #waitForRoom(): Promise<void> {
    this.#deadline?.cancel();
    this.#pace?.cancel();
    const sinceMs = this.#clock.monotonicMs();
    const room = this.#isSlow ? Math.min(this.#body.bytes + this.#paceBytes, this.#bytesMax) : this.#bytesMax;
    try {
      await this.#held.reserve(room);
      this.#exchange.signal.throwIfAborted();
      if (this.#isOver) return;
      this.#room = room;
      this.#body.makePlace(this.#bytesMax);
      this.#startedAtMs += this.#clock.monotonicMs() - sinceMs;
      this.#checkDeadline();
      this.#watchPace();
      this.#request.resume();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  get #paceBytes(): number {
    return paceSeconds * this.#times.bytesPerExtraSecond;
  }

  #watchPace(): void {
    const before = this.#body.bytes;
    this.#pace = this.#clock.after(paceSeconds * 1_000, () => {
      this.#isSlow = this.#body.bytes - before < this.#paceBytes;
      if (!this.#isSlow) return this.#watchPace();
      this.#held.retract(this.#body.bytes);
      this.#room = this.#body.bytes;
    });
  }

  #checkDeadline(): void {
    const { bodyMsMax, bytesPerExtraSecond } = this.#times;
    const allowedMs = bodyMsMax + (this.#body.bytes / bytesPerExtraSecond) * 1_000;
    const leftMs = Math.ceil(this.#startedAtMs + allowedMs - this.#clock.monotonicMs());
    if (leftMs > 0) this.#deadline = this.#clock.after(leftMs, () => this.#checkDeadline());
    else this.#fail(new ApiError("invalid_request", "The body did not arrive in time.", { reason: "body_too_slow" }));
  }

  readonly #end = (): void => {
    this.#stop();
    this.#settle.resolve(this.#body.whole());
  };

  readonly #close = (): void => this.#fail(new ClientGone());

  #fail(error: Error): void {
    this.#stop();
    this.#settle.reject(error);
  }

  #stop(): void {
    this.#isOver = true;
    this.#deadline?.cancel();
    this.#pace?.cancel();
    this.#request.off("data", this.#take).off("end", this.#end).off("close", this.#close);
  }
}
