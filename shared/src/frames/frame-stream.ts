/**
 * One end of one stream: a request and its answer. It counts the credit of both directions, and keeps what came while
 * nobody takes it: at most one window. It begins paused.
 */
import { assert } from "../assert.ts";
import { BrokenRule, cancelCode, cancelOf, frames, windowBytes, type Cancel } from "./frame.ts";
import { ByteQueue } from "./byte-queue.ts";
import { sliceBytesMax, type FrameWriter } from "./frame-writer.ts";

/** Takes what comes on a stream. */
export interface StreamSink {
  /** The record with which an answer begins: a router's end alone is told one. */
  head(record: string): void;
  /** A slice of a larger buffer: who keeps it for long copies it. Never called while the stream is paused. */
  data(bytes: Buffer): void;
  /** The body has ended, after its last `data`. `code`: see `ends`. */
  end(code: number): void;
  /**
   * The agent works no more on this stream: its END has come, or its DONE. Much of the answer may still wait to be taken.
   * Called once, at a router's end only, and not for a stream that was lost.
   */
  done?(): void;
  /** The stream ended before its end; data that was not taken is dropped. Not called for the end's own `cancel`. */
  gone(why: Gone): void;
  /**
   * Bytes that waited have been handed to the socket, after a `write` or `end` that returned false. `left`: those that
   * still wait; 0: none, and the end is sent, too, if it waited.
   */
  drain(left: number): void;
}

/** Pieces that are kept are merged up to this length, so that many small ones hold no more memory than their bytes. */
const mergedBytesMax = 4 << 10;

/** Why a stream ended before its end: the peer cancelled it, or the connection was lost. */
export type Gone = Cancel | "lost";

export class FrameStream {
  sink!: StreamSink;
  /** Bytes that may still be sent. */
  credit = windowBytes;
  /** Bytes that may still come. */
  #peerCredit = windowBytes;
  /** Bytes taken since the last WINDOW. */
  #taken = 0;
  #isPaused = true;
  /** What came while paused. */
  #kept: Buffer[] | undefined;
  /** What waits for credit, or for room in the socket. */
  #queue: ByteQueue | undefined;
  /** The code of an END that waits for the queue. */
  #ending: number | undefined;
  /** The code of an END that came and was not told yet. */
  #peerEnding: number | undefined;
  #hasEnded = false;
  /** Whether the sink was told that the agent works no more. */
  #hasToldDone = false;
  #isOver = false;
  /** Whether the peer has sent its HEAD. */
  #hasBegun: boolean;
  readonly id: number;
  readonly #isRouter: boolean;
  readonly #writer: FrameWriter;
  readonly #onOver: (id: number) => void;

  constructor(id: number, isRouter: boolean, writer: FrameWriter, onOver: (id: number) => void) {
    this.id = id;
    this.#isRouter = isRouter;
    this.#hasBegun = !isRouter;
    this.#writer = writer;
    this.#onOver = onOver;
  }

  /** Whether nothing can be sent any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Bytes that were written, and wait for credit or for room in the socket. */
  get unsent(): number {
    return this.#queue?.bytes ?? 0;
  }

  head(record: string): void {
    if (!this.#isOver) this.#writer.text(frames.head, this.id, record);
  }

  /**
   * Sends a piece of the body, or keeps it until there is credit and room, a long one without a copy. Returns false if it
   * is kept: `drain` then says how much of it still waits.
   */
  write(piece: string | Buffer): boolean {
    if (this.#isOver || piece.length === 0) return true;
    assert(this.#ending === undefined, "a write after the end of a stream");
    const isText = typeof piece === "string";
    const bytesMax = isText ? 3 * piece.length : piece.length;
    if (!this.#queue && bytesMax <= sliceBytesMax && bytesMax <= this.credit && !this.#writer.isFull) {
      if (isText) this.credit -= this.#writer.text(frames.data, this.id, piece);
      else this.#send(piece);
      return true;
    }
    this.#queue ??= new ByteQueue();
    this.#queue.push(piece);
    if (this.credit > 0) this.#writer.wait(this);
    return false;
  }

  /** Ends the body. Returns false if that waits for what was written before. When the agent ends its body, the stream is over. */
  end(code: number): boolean {
    if (this.#isOver) return true;
    this.#ending = code;
    if (this.#queue) return false;
    this.#sendEnd();
    return true;
  }

  /** Ends the body now: what waits is not sent. */
  endNow(code: number): void {
    if (this.#isOver) return;
    this.#queue = undefined;
    this.#ending = code;
    this.#sendEnd();
  }

  /** Tells the router that only what was written is still to be sent. */
  done(): void {
    if (!this.#isOver) this.#writer.bytes(frames.done, this.id, Buffer.alloc(0));
  }

  /** Ends the stream now. What waits is not sent, and the sink is told nothing more. */
  cancel(reason: Cancel): void {
    if (!this.#isOver) this.#writer.number(frames.cancel, this.id, cancelCode(reason), 1);
    this.#drop();
  }

  /** Nothing more is handed to the sink until `resume`; at most a window comes. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    while (this.#kept && !this.#isPaused) {
      const piece = this.#kept.shift()!;
      if (this.#kept.length === 0) this.#kept = undefined;
      this.#give(piece);
    }
    if (this.#isPaused || this.#peerEnding === undefined) return;
    const code = this.#peerEnding;
    this.#peerEnding = undefined;
    this.sink.end(code);
  }

  // From here on: what the connection tells its stream.

  writeSlice(): boolean {
    const queue = this.#queue!;
    this.#send(queue.shift(Math.min(sliceBytesMax, this.credit)));
    if (queue.bytes > 0) {
      this.sink.drain(queue.bytes);
      return this.credit > 0 && !this.#isOver;
    }
    this.#queue = undefined;
    if (this.#ending !== undefined) this.#sendEnd();
    this.sink.drain(0);
    return false;
  }

  headCame(record: string): void {
    if (this.#hasBegun) throw new BrokenRule("state", "a second HEAD");
    this.#hasBegun = true;
    this.sink.head(record);
  }

  /** The header of a DATA. Its bytes follow, in pieces. */
  dataBegins(length: number): void {
    this.#mustBeOpen("DATA");
    if (length > this.#peerCredit)
      throw new BrokenRule("credit", `DATA of ${length} bytes, credit ${this.#peerCredit}`);
    this.#peerCredit -= length;
  }

  dataCame(bytes: Buffer): void {
    if (this.#isOver) return;
    if (this.#isPaused) this.#keep(bytes);
    else this.#give(bytes);
  }

  endCame(code: number): void {
    this.#mustBeOpen("END");
    this.#hasEnded = true;
    this.#peerEnding = code;
    if (this.#isRouter) {
      this.#finish();
      this.#tellDone();
    }
    if (!this.#isPaused) this.resume();
  }

  doneCame(): void {
    if (!this.#isRouter) throw new BrokenRule("state", "a DONE of the router");
    this.#tellDone();
  }

  windowCame(bytes: number): void {
    if (bytes === 0 || this.credit + bytes > windowBytes)
      throw new BrokenRule("credit", `a WINDOW of ${bytes} bytes, credit ${this.credit}`);
    this.credit += bytes;
    if (this.#queue) this.#writer.wait(this);
  }

  /** Told by the peer's CANCEL, or by the end of the connection. */
  lose(why: number | "lost"): void {
    this.#drop();
    this.sink.gone(why === "lost" ? why : cancelOf(why));
  }

  #tellDone(): void {
    if (this.#hasToldDone) return;
    this.#hasToldDone = true;
    this.sink.done?.();
  }

  #mustBeOpen(what: string): void {
    if (!this.#hasBegun) throw new BrokenRule("state", `${what} before HEAD`);
    if (this.#hasEnded) throw new BrokenRule("state", `${what} after END`);
  }

  #send(bytes: Buffer): void {
    this.credit -= bytes.length;
    this.#writer.bytes(frames.data, this.id, bytes);
  }

  #sendEnd(): void {
    this.#writer.number(frames.end, this.id, this.#ending!, 1);
    if (!this.#isRouter) this.#drop();
  }

  #drop(): void {
    this.#finish();
    this.#kept = undefined;
    this.#peerEnding = undefined;
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue = undefined;
    this.#writer.forget(this);
    this.#onOver(this.id);
  }

  #keep(bytes: Buffer): void {
    const last = this.#kept?.at(-1);
    if (!this.#kept || !last) this.#kept = [Buffer.from(bytes)];
    else if (last.length + bytes.length > mergedBytesMax) this.#kept.push(Buffer.from(bytes));
    else this.#kept[this.#kept.length - 1] = Buffer.concat([last, bytes]);
  }

  #give(bytes: Buffer): void {
    this.#taken += bytes.length;
    this.sink.data(bytes);
    if (this.#taken < windowBytes / 2 || this.#isOver || this.#hasEnded) return;
    this.#peerCredit += this.#taken;
    this.#writer.number(frames.window, this.id, this.#taken, 4);
    this.#taken = 0;
  }
}
