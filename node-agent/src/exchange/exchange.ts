/** One request of a router: its stream, its deadline, and every way in which it can end. */
import { EndController, type EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { Patience } from "@weiche/shared/time/patience.ts";
import { errorBody, errorHeaders, type ApiError } from "@weiche/shared/errors.ts";
import { failureEnd } from "@weiche/shared/frames/failure-ends.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import type { FrameStream, Gone, StreamSink } from "@weiche/shared/frames/frame-stream.ts";
import { waitedText, type AnswerKind, type AnswerRecord } from "@weiche/shared/node-protocol.ts";
import type { AnswerRest } from "../answer/answer-rest.ts";
import { IncomingBody } from "../intake/request-body.ts";
import type { Admission } from "../slots/admission.ts";
import type { UnreadAnswer } from "./unread-answers.ts";

/** Why a request ends early without a fault of the engine. */
type EndedBy =
  /** The client disconnected or does not read. */
  | "client"
  | "router"
  /** The published time limit of requests was reached. */
  | "limit"
  | "stop";

export class Ended extends Error {
  readonly by: EndedBy;

  constructor(by: EndedBy) {
    super(`ended by ${by}`);
    this.by = by;
  }
}

/**
 * The required reading speed of a client that delays its engine because too much is unread. Routers check the speed of
 * all other clients, because an agent only learns of each 128 KiB.
 */
const holdingBack = { msMax: 60_000, floorBytesPerSecond: 16 << 10 };
/** How long the error event of a request at its time limit may wait to be read. */
const lastEventMsMax = 60_000;

export class Exchange implements StreamSink {
  readonly #stream: FrameStream;
  readonly #clock: Clock;
  readonly #ended = new EndController();
  #limit: Timer | undefined;
  #limitAtMs = Infinity;
  #body: IncomingBody | undefined;
  #isAnswering = false;
  /** Whether the form of the answer allows an error event. */
  #isEventStream = false;
  /** Set with the last byte. */
  #hasFinished = false;
  #waited: readonly [what: string, estimatedMs: number] = ["", 0];
  /** Called when nothing is unsent any more, or nothing can be sent any more. */
  #onDrain: (() => void) | undefined;
  #unread: UnreadAnswer | undefined;
  #tellsDone = false;
  /** The bytes that the client has not read, as counted last. */
  #unreadBytes = 0;
  #rest: AnswerRest | undefined;
  /** Called when the unread bytes are below their limit again, or the request has ended. */
  #onRoom: (() => void) | undefined;
  #patience: Patience | undefined;

  constructor(stream: FrameStream, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
  }

  /** Aborts with an `Ended` or an engine's fault when the request can no longer be completed. */
  get signal(): EndSignal {
    return this.#ended.signal;
  }

  /** Whether the head of an answer was sent. Later errors cannot have a status. */
  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** Returns the cause of `error`. The end of a request breaks other operations with errors of their own. */
  causeOf(error: unknown): unknown {
    return this.signal.aborted ? this.signal.reason : error;
  }

  /** Records the wait, which the head of the answer reports to the router. */
  hasWaited({ waitedFor, waitedMs, estimatedMs = 0 }: Admission): void {
    this.#waited = [waitedText(waitedFor, waitedMs), Math.round(estimatedMs)];
  }

  /**
   * Counts the bytes that the client has not read in `unread`. `tellsDone`: the router needs a message when the engine
   * is done.
   */
  countIn(unread: UnreadAnswer, tellsDone: boolean): void {
    this.#unread = unread;
    this.#tellsDone = tellsDone;
  }

  /** The time left until the limit. */
  get leftMs(): number {
    return this.#limitAtMs - this.#clock.monotonicMs();
  }

  limitTo(ms: number): void {
    this.#limitAtMs = this.#clock.monotonicMs() + ms;
    this.#limit = this.#clock.after(ms, () => this.#atLimit());
  }

  #atLimit(): void {
    if (this.#hasFinished) return this.leave();
    this.#limit = this.#clock.after(lastEventMsMax, () => this.leave());
    this.endBy("limit");
  }

  endBy(by: EndedBy): void {
    this.endWith(new Ended(by));
  }

  endWith(reason: Error): void {
    this.#ended.abort(reason);
    this.#body?.fail(reason);
    if (!this.#hasFinished) this.#wake();
  }

  /** Returns the body. Rejects with an `ApiError` if it is too large, or with the signal's reason. */
  async readBody(announcedBytes: number): Promise<Buffer> {
    this.signal.throwIfAborted();
    this.#body = new IncomingBody(announcedBytes);
    this.#stream.resume();
    return await this.#body.whole;
  }

  // The methods of StreamSink, called for frames of the router.

  head(): void {}

  data(bytes: Buffer): void {
    this.#body!.take(bytes);
  }

  end(): void {
    this.#body!.end();
  }

  gone(why: Gone): void {
    // The answer is complete, so the reason for the end of its stream does not matter.
    if (this.#hasFinished) this.#wake();
    else this.endBy(why === "lost" ? "router" : "client");
  }

  drain(left: number): void {
    this.#count();
    if (left === 0) this.#onDrain?.();
  }

  /** Writes events. Returns a promise if too much is unread. Await it before writing more. */
  writeEvents(text: string): Promise<void> | undefined {
    this.signal.throwIfAborted();
    if (!this.#isAnswering) this.#respond(200, "events");
    if (this.#stream.write(text)) return undefined;
    this.#count();
    return this.room();
  }

  /** The engine is done. From now on `rest` counts as unread too. */
  keep(rest: AnswerRest): void {
    this.#rest = rest;
    this.#count();
  }

  /** The place was given back. Reports it to the router, unless the end of the answer follows at once. */
  done(): void {
    const { unsent, credit } = this.#stream;
    // Vectors count by the memory that they hold. Their text is several times as long.
    const isLong = unsent > 0 || (this.#rest?.heldBytes ?? 0) > credit / 4;
    if (this.#tellsDone && isLong) this.#stream.done();
  }

  /**
   * Resolves when the unread bytes are below their limit or the request has ended. Returns undefined if they are
   * already.
   */
  room(): Promise<void> | undefined {
    return this.#unread?.isFull && !this.signal.aborted ? this.#roomAgain() : undefined;
  }

  /** Resolves when everything written was passed to the socket. Rejects with the signal's reason. */
  async sent(): Promise<void> {
    this.signal.throwIfAborted();
    if (this.#stream.unsent === 0) return;
    await this.#drained();
    this.signal.throwIfAborted();
  }

  /** Sends the last bytes of a complete answer, or all of it as one body, marked as complete. */
  async complete(rest: AnswerRest): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.#isAnswering) this.#respond(200, "json");
    for (const piece of rest) {
      const isSent = this.#stream.write(piece);
      this.#count();
      if (isSent) continue;
      await this.#drained();
      this.signal.throwIfAborted();
    }
    await this.#finish(ends.complete);
  }

  /** Sends an error instead of an answer, or as the last event of an answer that has begun. */
  async fail(error: ApiError): Promise<void> {
    if (this.#stream.isOver) return;
    const body = JSON.stringify(errorBody(error));
    if (!this.#isAnswering) {
      this.#respond(error.status, "json", Number(errorHeaders(error)["retry-after"] ?? 0));
      this.#stream.write(body);
      return await this.#finish(failureEnd(error.reason) ?? ends.complete);
    }
    // A router voids an answer that is cut. That is right for our faults, but wrong for a client that has used up its
    // time.
    if (!this.#isEventStream) return error.kind === "timeout" ? this.leave() : this.cut();
    this.#stream.write(`data: ${body}\n\n`);
    await this.#finish(failureEnd(error.reason) ?? ends.failed);
  }

  /** Ends the stream without an END frame, so that the answer costs nothing. */
  cut(): void {
    this.#stream.cancel("unwanted");
    this.#wake();
  }

  /** Ends an answer that its client does not read. It costs the amount in its usage record. */
  leave(): void {
    if (!this.#isAnswering) return this.cut();
    this.#stream.endNow(ends.unread);
    this.#wake();
  }

  /** Releases the resources of the request. Call it once the request is served. */
  close(): void {
    this.#limit?.cancel();
    this.#patience?.stop();
    this.#rest = undefined;
    this.#count();
  }

  #wake(): void {
    this.#onDrain?.();
    this.#onRoom?.();
  }

  #count(): void {
    const unreadBytes = this.#stream.unsent + (this.#rest?.heldBytes ?? 0);
    if (unreadBytes < this.#unreadBytes) this.#patience?.took(this.#unreadBytes - unreadBytes);
    this.#unreadBytes = unreadBytes;
    this.#unread?.is(unreadBytes);
    if (this.#onRoom && !this.#unread?.isFull) this.#onRoom();
  }

  #respond(status: number, kind: AnswerKind, retryAfterSeconds = 0): void {
    this.#isAnswering = true;
    this.#isEventStream = kind === "events";
    this.#stream.head(JSON.stringify([status, kind, retryAfterSeconds, ...this.#waited] satisfies AnswerRecord));
  }

  /** Resolves when the connection has all bytes, or cannot get them any more. */
  async #finish(code: number): Promise<void> {
    this.#hasFinished = true;
    if (!this.#stream.end(code)) await this.#drained();
  }

  /** Resolves when nothing is unsent, or the request has ended. */
  async #drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onDrain = resolve;
    await promise;
    this.#onDrain = undefined;
  }

  async #roomAgain(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onRoom = resolve;
    const giveUp = () => (this.#hasFinished ? this.leave() : this.endBy("client"));
    this.#patience ??= new Patience({ clock: this.#clock, ...holdingBack, giveUp });
    this.#patience.start();
    await promise;
    this.#patience.stop();
    this.#onRoom = undefined;
  }
}
