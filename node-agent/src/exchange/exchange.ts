/** One request of a router: its stream, its deadline, and every way in which it can end. */
import { EndController, type EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { errorBody, errorHeaders, type ApiError } from "@weiche/shared/errors.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import type { FrameStream, Gone, StreamSink } from "@weiche/shared/frames/frame-stream.ts";
import { waitedText, type AnswerKind, type AnswerRecord, type WaitedFor } from "@weiche/shared/node-protocol.ts";
import { IncomingBody } from "../intake/request-body.ts";

/** Why a request ends early, other than by a fault of the engine. */
type EndedBy =
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

const stallMsMax = 60_000;
/** Longer texts are written in pieces, as the stall limit applies to each write. */
const pieceBytesMax = 64 << 10;

export class Exchange implements StreamSink {
  readonly #stream: FrameStream;
  readonly #clock: Clock;
  readonly #ended = new EndController();
  #limit: Timer | undefined;
  #body: IncomingBody | undefined;
  #isAnswering = false;
  /** Whether the answer's kind allows an error event. */
  #isEventStream = false;
  /** Set with the last byte. */
  #hasFinished = false;
  #waited = "";
  /** Tells a write that waits: the router takes more, or never will. */
  #onDrain: (() => void) | undefined;

  constructor(stream: FrameStream, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
  }

  /** Aborts, with an `Ended` or an engine's fault, when the request cannot be completed any more. */
  get signal(): EndSignal {
    return this.#ended.signal;
  }

  /** Whether the head of an answer was sent: then an error cannot have a status any more. */
  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** Returns the cause of `error`: an end of the request breaks other operations. */
  causeOf(error: unknown): unknown {
    return this.signal.aborted ? this.signal.reason : error;
  }

  /** Is told to the router with the head of the answer. */
  hasWaited(waitedFor: WaitedFor, ms: number): void {
    this.#waited = waitedText(waitedFor, ms);
  }

  limitTo(ms: number): void {
    this.#limit = this.#clock.after(ms, () => this.endBy("limit"));
  }

  endBy(by: EndedBy): void {
    this.endWith(new Ended(by));
  }

  endWith(reason: Error): void {
    this.#ended.abort(reason);
    this.#body?.fail(reason);
    if (!this.#hasFinished) this.#onDrain?.();
  }

  /** Rejects with an `ApiError` if the body is too large, or with the signal's reason. */
  async readBody(announcedBytes: number): Promise<Buffer> {
    this.signal.throwIfAborted();
    this.#body = new IncomingBody(announcedBytes);
    this.#stream.resume();
    return await this.#body.whole;
  }

  // The methods of StreamSink: frames from the router.

  head(): void {}

  data(bytes: Buffer): void {
    this.#body!.take(bytes);
  }

  end(): void {
    this.#body!.end();
  }

  gone(why: Gone): void {
    // The answer is complete: nobody reads why its stream has ended.
    if (this.#hasFinished) this.#onDrain?.();
    else this.endBy(why === "lost" ? "router" : "client");
  }

  drain(): void {
    this.#onDrain?.();
  }

  /** Writes events. Returns a promise if the client is slower than its engine. */
  writeEvents(text: string): Promise<void> | undefined {
    this.signal.throwIfAborted();
    if (!this.#isAnswering) this.#respond(200, "events");
    return this.#write(text);
  }

  /** Sends the last bytes of a complete answer, or all of it as one body, with the mark that it is complete. */
  async complete(pieces: Iterable<string>): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.#isAnswering) this.#respond(200, "json");
    for (const piece of pieces) await this.#write(piece);
    await this.#finish(ends.complete);
  }

  /** Sends an error instead of an answer, or as the last event of one that has begun. */
  async fail(error: ApiError): Promise<void> {
    if (this.#stream.isOver) return;
    const body = JSON.stringify(errorBody(error));
    if (!this.#isAnswering) {
      this.#respond(error.status, "json", Number(errorHeaders(error)["retry-after"] ?? 0));
      this.#stream.write(body);
      return await this.#finish(faultEndOf(error) ?? ends.complete);
    }
    if (!this.#isEventStream) return this.cut();
    this.#stream.write(`data: ${body}\n\n`);
    await this.#finish(faultEndOf(error) ?? ends.failed);
  }

  /** Ends the stream without an END. */
  cut(): void {
    this.#limit?.cancel();
    this.#stream.cancel("unwanted");
    this.#onDrain?.();
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

  #respond(status: number, kind: AnswerKind, retryAfterSeconds = 0): void {
    this.#isAnswering = true;
    this.#isEventStream = kind === "events";
    this.#stream.head(JSON.stringify([status, kind, retryAfterSeconds, this.#waited] satisfies AnswerRecord));
  }

  /** Resolves when the connection has everything, or never will. */
  async #finish(code: number): Promise<void> {
    this.#limit?.cancel();
    this.#hasFinished = true;
    if (this.#stream.end(code)) return;
    await this.#wait(() => this.cut());
  }

  async #drained(): Promise<void> {
    await this.#wait(() => this.endBy("client"));
    this.signal.throwIfAborted();
  }

  /** Resolves when more can be written or the request has ended; calls `stalled` after a minute without either. */
  async #wait(stalled: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onDrain = resolve;
    const stall = this.#clock.after(stallMsMax, stalled);
    await promise;
    stall.cancel();
    this.#onDrain = undefined;
  }
}

/** The END that tells the router that the engine or this node failed, and how. Undefined: neither did. */
function faultEndOf({ reason }: ApiError): number | undefined {
  if (reason === "alone") return ends.engineDiedAlone;
  if (reason === "shared") return ends.engineDiedShared;
  if (reason === "node-failed") return ends.nodeFailed;
  if (reason === "engine-lost") return ends.engineLost;
  return undefined;
}
