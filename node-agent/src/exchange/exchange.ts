/** One request of a router: its stream, its deadline, and every way in which it can end. */
import { once } from "node:events";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { errorBody, errorHeaders, type ApiError } from "@weiche/shared/errors.ts";
import {
  endComplete,
  endError,
  endTrailer,
  engineDeathHeader,
  waitedHeader,
  waitedText,
  type WaitedFor,
} from "@weiche/shared/node-protocol.ts";
import { readBody } from "../intake/request-body.ts";

/** Why a request ends early, other than by a fault of the engine. */
export type EndedBy =
  /** The client disconnected, or does not read. */
  | "client"
  | "router"
  /** The time limit of requests, which is published, was reached. */
  | "limit"
  | "stop";

export class Ended extends Error {
  readonly by: EndedBy;

  constructor(by: EndedBy) {
    super(`ended by ${by}`);
    this.by = by;
  }
}

/** The questions that a stream's handler may ask about the session that the stream came on. */
export interface StreamSession {
  /** Whether the whole session is lost: then the router went away, not its client. Ask at the stream's `close`. */
  routerLost(): boolean;
}

const stallMsMax = 60_000;
/** Longer texts are written in pieces, as the stall limit applies to each write. */
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
  /** Value of the end trailer; set with the last byte. */
  #ending: typeof endComplete | typeof endError | undefined;
  #moreTrailers: Record<string, string> = {};
  #waited: string | undefined;

  constructor(stream: ServerHttp2Stream, session: StreamSession, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
    stream.on("error", () => {}); // `close` follows
    this.#closed = new Promise((resolve) =>
      stream.once("close", () => {
        // Nobody reads why a complete answer ended: not building an `Ended` saves 1 % of a request.
        if (this.#ending) this.#ended.abort(handedOver);
        else this.end(session.routerLost() ? "router" : "client");
        resolve();
      }),
    );
  }

  /** Aborts, with an `Ended` or an engine's fault, when the request cannot be completed any more. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the head of an answer was sent: then an error cannot have a status any more. */
  get isAnswering(): boolean {
    return this.#stream.headersSent;
  }

  /** Returns the cause of `error`: a closing stream breaks other operations before it reports `close`. */
  async causeOf(error: unknown): Promise<unknown> {
    if (this.#stream.destroyed || this.#stream.aborted) await this.#closed;
    return this.signal.aborted ? this.signal.reason : error;
  }

  /** Is told to the router with the head of the answer. */
  hasWaited(waitedFor: WaitedFor, ms: number): void {
    this.#waited = waitedText(waitedFor, ms);
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

  /** Writes events. Returns a promise if the client is slower than its engine. */
  writeEvents(text: string): Promise<void> | undefined {
    this.signal.throwIfAborted();
    if (!this.isAnswering) this.#respond(eventStreamHeaders);
    this.#isEventStream = true;
    return this.#write(text);
  }

  /** Sends the last bytes of a complete answer, or all of it as one body, with the mark that it is complete. */
  async complete(pieces: Iterable<string>): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.isAnswering) this.#respond({ ":status": 200, ...jsonType, ...(isList(pieces) && wholeHeaders(pieces)) });
    for (const piece of pieces) await this.#write(piece);
    await this.#finish(endComplete);
  }

  /** Sends an error instead of an answer, or as the last event of one that has begun. */
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
    this.#moreTrailers = deathOf(error);
    this.#stream.write(`data: ${body}\n\n`);
    await this.#finish(endError);
  }

  /** Resets the stream: the router sees no trailer. */
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
    const sent = this.#waited === undefined ? headers : { ...headers, [waitedHeader]: this.#waited };
    this.#stream.respond(sent, { waitForTrailers });
    if (!waitForTrailers) return;
    this.#stream.once("wantTrailers", () => {
      if (this.#ending) this.#stream.sendTrailers({ [endTrailer]: this.#ending, ...this.#moreTrailers });
      else this.cut();
    });
  }

  /** Resolves when the router has everything, or never will. */
  async #finish(ending: typeof endComplete | typeof endError): Promise<void> {
    this.#limit?.cancel();
    this.#ending = ending;
    this.#stream.end();
    this.#stream.resume(); // discards the rest of the request
    const stall = this.#clock.after(stallMsMax, () => this.cut());
    await this.#closed;
    stall.cancel();
  }

  async #drained(): Promise<void> {
    const stall = this.#clock.after(stallMsMax, () => this.end("client"));
    try {
      await once(this.#stream, "drain", { signal: this.signal });
    } catch (error) {
      this.signal.throwIfAborted();
      throw error;
    } finally {
      stall.cancel();
    }
  }
}

/** Tells the router whether the engine died over this request. */
function deathOf({ kind, reason }: ApiError): Record<string, string> {
  return kind === "engine_died" && reason !== undefined ? { [engineDeathHeader]: reason } : {};
}

/** A generated answer is long and has no known length; it is made while it is sent. */
function isList(pieces: Iterable<string>): pieces is readonly string[] {
  return Array.isArray(pieces);
}

/** Replaces the trailer: saves two turns of the event loop and a frame on both sides. */
function wholeHeaders(pieces: readonly string[]): Record<string, string | number> {
  const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return { "content-length": bytes, [endTrailer]: endComplete };
}
