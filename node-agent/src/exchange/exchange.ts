/** The router's end of one request: its stream, its deadline, and every way in which it can end. */
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { errorBody, errorHeaders, type ApiError } from "@weiche/shared/errors.ts";
import { endComplete, endError, endTrailer, engineDeathHeader } from "@weiche/shared/node-protocol.ts";
import { readBody } from "../intake/request-body.ts";

/** Why a request ends before its answer is whole, when it is not the engine's doing. */
export type EndedBy =
  /** It went away, or does not read. */
  | "client"
  /** The whole session was lost. */
  | "router"
  /** The time for a request is over: a published limit. */
  | "limit"
  /** This agent stops. */
  | "stop";

export class Ended extends Error {
  readonly by: EndedBy;

  constructor(by: EndedBy) {
    super(`ended by ${by}`);
    this.by = by;
  }
}

/** Told a stream's handler by the data connection. */
export interface StreamSession {
  /** Whether the session is lost, and not only the stream. Asked at the stream's `close`. */
  routerLost(): boolean;
}

const stallMsMax = 60_000;
/** What is longer is written in pieces, each of which a client has the time of a stall for. */
const pieceBytesMax = 64 << 10;
const handedOver = Symbol("handed over");

const eventStreamHeaders = {
  ":status": 200,
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};
const jsonType = { "content-type": "application/json; charset=utf-8" };

export class Exchange {
  readonly #stream: ServerHttp2Stream;
  readonly #clock: Clock;
  readonly #ended = new AbortController();
  readonly #closed: Promise<void>;
  #limit: Timer | undefined;
  /** Whether the answer's content type allows an error event. */
  #isEventStream = false;
  /** Set with the last byte; what its trailer will say. */
  #ending: typeof endComplete | typeof endError | undefined;
  /** More trailers. */
  #endsWith: Record<string, string> = {};

  constructor(stream: ServerHttp2Stream, session: StreamSession, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
    stream.on("error", () => {}); // `close` follows
    this.#closed = new Promise((resolve) =>
      stream.once("close", () => {
        // Of an answer that was handed over whole, nobody asks why it ended: an error less to build (1 % of a request).
        if (this.#ending) this.#ended.abort(handedOver);
        else this.end(session.routerLost() ? "router" : "client");
        resolve();
      }),
    );
  }

  /** Aborts, with an `Ended` or an engine's fault, when there is no point in going on. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the router has the head of an answer: then there is no status any more to say something with. */
  get isAnswering(): boolean {
    return this.#stream.headersSent;
  }

  /** What really ended it, if `error` was met: a stream that is going breaks other things before it says so. */
  async causeOf(error: unknown): Promise<unknown> {
    if (this.#stream.destroyed || this.#stream.aborted) await this.#closed;
    return this.signal.aborted ? this.signal.reason : error;
  }

  limitTo(ms: number): void {
    this.#limit = this.#clock.after(ms, () => this.end("limit"));
  }

  end(by: EndedBy): void {
    this.#ended.abort(new Ended(by));
  }

  endWith(reason: Error): void {
    this.#ended.abort(reason);
  }

  async readBody(): Promise<Buffer> {
    return await readBody(this.#stream, this.signal);
  }

  /** Writes events. Returns something to wait for if the client is slower than its engine. */
  writeEvents(text: string): Promise<void> | undefined {
    this.signal.throwIfAborted();
    if (!this.isAnswering) this.#respond(eventStreamHeaders);
    this.#isEventStream = true;
    return this.#write(text);
  }

  /** The last bytes of a whole answer, as one body if nothing was sent before, and what proves it. */
  async complete(pieces: Iterable<string>): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.isAnswering) this.#respond({ ":status": 200, ...jsonType, ...(isList(pieces) && wholeHeaders(pieces)) });
    for (const piece of pieces) await this.#write(piece);
    await this.#finish(endComplete);
  }

  /** An error instead of an answer, or where a part of it is sent, as its last event. */
  async fail(error: ApiError): Promise<void> {
    if (this.#stream.destroyed) return;
    const body = JSON.stringify(errorBody(error));
    if (!this.isAnswering) {
      const headers = { ...errorHeaders(error), ...deathOf(error) };
      this.#respond({ ":status": error.status, ...jsonType, ...headers, ...wholeHeaders([body]) });
      this.#stream.write(body);
      return await this.#finish(endComplete);
    }
    if (!this.#isEventStream) return this.cut();
    this.#endsWith = deathOf(error);
    this.#stream.write(`data: ${body}\n\n`);
    await this.#finish(endError);
  }

  /** Ends it without a word: the router sees no trailer. */
  cut(): void {
    this.#limit?.cancel();
    if (!this.#stream.closed) this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #write(text: string): Promise<void> | undefined {
    if (text.length > pieceBytesMax) return this.#writeLong(Buffer.from(text));
    return this.#stream.write(text) ? undefined : this.#drained();
  }

  async #writeLong(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; at += pieceBytesMax) {
      this.signal.throwIfAborted();
      if (!this.#stream.write(bytes.subarray(at, at + pieceBytesMax))) await this.#drained();
    }
  }

  #respond(headers: Record<string, string | number>): void {
    const waitForTrailers = !(endTrailer in headers);
    this.#stream.respond(headers, { waitForTrailers });
    if (!waitForTrailers) return;
    this.#stream.once("wantTrailers", () => {
      if (this.#ending) this.#stream.sendTrailers({ [endTrailer]: this.#ending, ...this.#endsWith });
      else this.cut();
    });
  }

  /** Resolves when the router has all of it, or will never have. */
  async #finish(ending: typeof endComplete | typeof endError): Promise<void> {
    this.#limit?.cancel();
    this.#ending = ending;
    this.#stream.end();
    this.#stream.resume(); // what may still come of the request
    const stall = this.#clock.after(stallMsMax, () => this.cut());
    await this.#closed;
    stall.cancel();
  }

  async #drained(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(this.signal.reason as Error);
    const stall = this.#clock.after(stallMsMax, () => this.end("client"));
    this.#stream.once("drain", resolve);
    this.signal.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      stall.cancel();
      this.#stream.off("drain", resolve);
      this.signal.removeEventListener("abort", onAbort);
    }
  }
}

/** Told to the router, who knows the body. */
function deathOf({ kind, reason }: ApiError): Record<string, string> {
  return kind === "engine_died" && reason !== undefined ? { [engineDeathHeader]: reason } : {};
}

/** A long answer is made while it is sent; its length is not known before. */
function isList(pieces: Iterable<string>): pieces is readonly string[] {
  return Array.isArray(pieces);
}

/** Instead of a trailer: two turns of the event loop and a frame less on both sides. */
function wholeHeaders(pieces: readonly string[]): Record<string, string | number> {
  const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return { "content-length": bytes, [endTrailer]: endComplete };
}
