/**
 * Hands a node's answer to the client: the same bytes, with back-pressure. An answer is complete only with the node's
 * END, and a cut answer must not look complete: of a stream only finished events are passed on, so that an
 * error event can always follow; of any other answer the last piece waits for the END.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { Patience } from "@weiche/shared/time/patience.ts";
import { ApiError, asApiError, errorBody } from "@weiche/shared/errors.ts";
import { NodeLost, type AnswerBody, type AnswerReader, type UpstreamResponse } from "../nodes/upstream.ts";
import { ClientGone, type Exchange } from "./exchange.ts";
import { LastPiece, UnfinishedEvent } from "./withheld.ts";

/** A client must read so fast, beyond what its sockets hold. */
const floorBytesPerSecond = 1 << 10;

/**
 * The sink tells when a client has taken all that it got: of a long event it gets so much at a time, so that a client at
 * the floor is heard of in time.
 */
const sliceBytesMax = 16 << 10;
const nothing = Buffer.alloc(0);

/**
 * Resolves with the first byte; the rest follows until the exchange is settled. Rejects while another status is still
 * possible: with `NodeLost` if nothing came (another node may be asked), with the reason of `exchange.signal`, or with an
 * `ApiError`.
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
  /** May be passed on, but the client has not read what comes before it. */
  #waiting: Buffer = nothing;
  /** Bytes handed to the sink since it had none left. */
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

  /** Writes what waits until the sink is full. Returns false if it is. */
  #writeOn(): boolean {
    while (this.#waiting.length > 0) {
      const slice = this.#waiting.subarray(0, sliceBytesMax);
      this.#waiting = this.#waiting.subarray(slice.length);
      if (!this.#write(slice)) return false;
    }
    return true;
  }

  /** Writes what waits, although the sink may be full: nothing more comes. */
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

  /** Called when the client has left or the time limit is over. */
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
    // What is buffered may be read at the floor.
    this.#patience.took(this.#written);
    if (!sink.end(rest)) this.#patience.start();
  }

  /** Closes the connection before the answer is complete, after what was written before was sent. */
  #cutAfter(error: ApiError | undefined, outcome: "broken" | "timeout" | "stalled"): void {
    this.#exchange.outcome = outcome;
    this.#writeAll();
    if (error && this.#isStream) this.#write(errorEvent(error, this.#withheld.torn));
    this.#patience.start();
    this.#exchange.sink.cut("written");
  }

  /** `length`: known once the whole answer is here. */
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
  return new ApiError("internal", "The answer was broken off.");
}

function errorEvent(error: ApiError, torn: boolean): Buffer {
  return Buffer.from(`${torn ? "\n\n" : ""}data: ${JSON.stringify(errorBody(error))}\n\n`);
}
