/**
 * Relays a node's answer to the client: the same bytes, with back-pressure. An answer is complete only with the node's END,
 * and a cut answer must not look complete. So a stream passes on only finished events, after which an error event can
 * always follow. The last piece of any other answer waits for the END.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { Patience } from "@weiche/shared/time/patience.ts";
import { ApiError, asApiError, errorBody } from "@weiche/shared/errors.ts";
import { NodeLost, type AnswerBody, type AnswerReader, type UpstreamResponse } from "../nodes/upstream.ts";
import { ClientGone, type Exchange } from "./exchange.ts";
import { LastPiece, UnfinishedEvent } from "./withheld.ts";

/** The minimum rate at which a client must read, after its socket buffers are full. */
const floorBytesPerSecond = 1 << 10;

/**
 * The sink reports only when all its bytes were read. The sink gets a long event in slices of this size, so that the
 * router notices the progress of a client at the minimum rate in time.
 */
const sliceBytesMax = 16 << 10;
const nothing = Buffer.alloc(0);

/**
 * Resolves with the first byte; the rest follows until the exchange is settled. Rejects only before the first byte: with
 * `NodeLost` if nothing arrived (another node may be asked), with the reason of `exchange.signal`, or with an `ApiError`.
 */
export function relay(exchange: Exchange, answer: UpstreamResponse, clock: Clock, stallMsMax: number): Promise<void> {
  return new Relay(exchange, answer, clock, stallMsMax).begun;
}

class Relay implements AnswerReader {
  readonly #exchange: Exchange;
  readonly #body: AnswerBody;
  readonly #clock: Clock;
  readonly #first = Promise.withResolvers<void>();
  readonly #isStream: boolean;
  /** Received bytes that must not be passed on yet. */
  readonly #withheld: UnfinishedEvent | LastPiece;
  readonly #patience: Patience;
  /** Bytes that may be passed on, but wait until the client has read earlier ones. */
  #waiting: Buffer = nothing;
  /** Bytes written to the sink since it was last empty. */
  #written = 0;
  #received = false;
  #detached = false;

  constructor(exchange: Exchange, answer: UpstreamResponse, clock: Clock, stallMsMax: number) {
    this.#exchange = exchange;
    this.#body = answer.body;
    this.#clock = clock;
    this.#patience = new Patience({ clock, msMax: stallMsMax, floorBytesPerSecond, giveUp: () => this.#giveUp() });
    this.#isStream = answer.kind === "events";
    this.#withheld = this.#isStream ? new UnfinishedEvent() : new LastPiece();
    exchange.sink.onDrain(() => this.#drained());
    exchange.signal.addEventListener("abort", this.#onAbort);
    exchange.onSettled(() => this.#patience.stop());
    if (exchange.signal.aborted) this.#onAbort();
    answer.body.readInto(this);
  }

  /** Resolves with the first byte. */
  get begun(): Promise<void> {
    return this.#first.promise;
  }

  take(chunk: Buffer): void {
    if (this.#detached) return;
    this.#received = true;
    const ready = this.#withheld.push(chunk);
    if (!ready) return;
    this.#waiting = ready;
    if (this.#writeOn()) return;
    this.#body.pause();
    this.#patience.start();
  }

  /** Writes waiting bytes until the sink is full. Returns false if it is full. */
  #writeOn(): boolean {
    while (this.#waiting.length > 0) {
      const slice = this.#waiting.subarray(0, sliceBytesMax);
      this.#waiting = this.#waiting.subarray(slice.length);
      if (!this.#write(slice)) return false;
    }
    return true;
  }

  /** Writes all waiting bytes even if the sink is full, because nothing more follows. */
  #writeAll(): void {
    const left = this.#waiting;
    this.#waiting = nothing;
    if (left.length > 0) this.#write(left);
  }

  #drained(): void {
    if (this.#detached) return;
    this.#patience.took(this.#written);
    this.#patience.stop();
    this.#written = 0;
    if (this.#writeOn()) this.#body.resume();
    else this.#patience.start();
  }

  end(): void {
    if (this.#detached) return;
    this.#detach();
    const { hasBegun } = this.#exchange.sink;
    switch (this.#body.ending) {
      case "complete":
        return this.#finish();
      case "error":
      case "unread":
        if (!hasBegun) return this.#first.reject(broken());
        return this.#cutAfter(undefined, this.#body.ending === "unread" ? "stalled" : "broken");
      case "broken":
        if (hasBegun) return this.#cutAfter(broken(), "broken");
        return this.#first.reject(this.#received ? broken() : new NodeLost("the answer ended before it began"));
    }
  }

  /** Handles a client that left, or the end of the time limit. */
  readonly #onAbort = (): void => {
    this.#detach();
    this.#body.cancel();
    const reason: unknown = this.#exchange.signal.reason;
    if (reason instanceof ClientGone || !this.#exchange.sink.hasBegun) return this.#first.reject(reason);
    this.#cutAfter(asApiError(reason), "timeout");
  };

  #write(bytes: Buffer): boolean {
    if (!this.#exchange.sink.hasBegun) this.#head();
    this.#exchange.bytesSent += bytes.length;
    this.#written += bytes.length;
    return this.#exchange.sink.piece(bytes);
  }

  #finish(): void {
    this.#writeAll();
    const { sink } = this.#exchange;
    const { rest } = this.#withheld;
    if (!sink.hasBegun) this.#head(rest?.length ?? 0);
    this.#exchange.bytesSent += rest?.length ?? 0;
    // The client may read the buffered bytes at the minimum rate.
    this.#patience.took(this.#written);
    if (!sink.end(rest)) this.#patience.start();
  }

  /** Closes the connection before the answer is complete, after the written bytes were sent. */
  #cutAfter(error: ApiError | undefined, outcome: "broken" | "timeout" | "stalled"): void {
    this.#exchange.outcome = outcome;
    this.#writeAll();
    if (error && this.#isStream) this.#write(errorEvent(error, this.#withheld.torn));
    this.#patience.start();
    this.#exchange.sink.cut("written");
  }

  /** Writes the head. `length` is given if the whole answer has arrived. */
  #head(length?: number): void {
    this.#exchange.status = 200;
    this.#exchange.firstByteAtMs = this.#clock.monotonicMs();
    this.#exchange.sink.head(200, {
      ...(this.#isStream ? streamHeaders : jsonHeaders),
      ...(length === undefined || this.#isStream ? {} : { "content-length": length }),
      "x-request-id": this.#exchange.id,
    });
    this.#first.resolve();
  }

  #giveUp(): void {
    this.#detach();
    this.#exchange.outcome = "stalled";
    this.#body.cancel();
    this.#exchange.sink.cut("at-once");
  }

  #detach(): void {
    this.#detached = true;
    this.#exchange.signal.removeEventListener("abort", this.#onAbort);
    this.#patience.stop();
  }
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};
const jsonHeaders = { "content-type": "application/json; charset=utf-8" };

function broken(): ApiError {
  return new ApiError("internal", "The answer ended before it was complete.");
}

function errorEvent(error: ApiError, torn: boolean): Buffer {
  return Buffer.from(`${torn ? "\n\n" : ""}data: ${JSON.stringify(errorBody(error))}\n\n`);
}
