/**
 * One end of one stream: a request and its answer. It counts the credit of both directions. It keeps received data
 * until the sink takes it, at most one window. It begins paused.
 */
import { assert } from "../assert.ts";
import { BrokenRule, cancelCode, cancelOf, frames, windowBytes, type Cancel } from "./frame.ts";
import { ByteQueue } from "./byte-queue.ts";
import { sliceBytesMax, type FrameWriter } from "./frame-writer.ts";

/** Receives the frames of a stream. */
export interface StreamSink {
  /** The record at the beginning of an answer. Called only at a router's end. */
  head(record: string): void;
  /** `bytes` is a slice of a larger buffer. Copy it to keep it for long. Never called while the stream is paused. */
  data(bytes: Buffer): void;
  /** The body has ended, after its last `data`. `ends` lists the codes. */
  end(code: number): void;
  /**
   * The agent has finished its work on this stream, as its END or DONE shows. Much of the answer may still wait for the
   * sink. Called at most once, only at a router's end, and not for a lost stream.
   */
  done?(): void;
  /** The stream ended early, and remaining data is dropped. Not called for this end's own `cancel`. */
  gone(why: Gone): void;
  /**
   * The socket has taken waiting bytes, after a `write` or `end` that returned false. `left` is the number of bytes
   * that still wait. With 0, a waiting end is sent, too.
   */
  drain(left: number): void;
}

/** Kept pieces are merged up to this length, so that many small pieces take no more memory than their bytes. */
const mergedBytesMax = 4 << 10;

/** Why a stream ended early: the peer cancelled it, or the connection was lost. */
export type Gone = Cancel | "lost";

export class FrameStream {
  sink!: StreamSink;
  /** Bytes that this end may still send. */
  credit = windowBytes;
  /** Bytes that the peer may still send. */
  #peerCredit = windowBytes;
  /** Bytes that the sink has taken since the last WINDOW. */
  #taken = 0;
  #isPaused = true;
  /** Data received while paused. */
  #kept: Buffer[] | undefined;
  /** Bytes that wait for credit, or for room in the socket. */
  #queue: ByteQueue | undefined;
  /** The code of an END that waits behind the queue. */
  #ending: number | undefined;
  /** The code of a received END that the sink does not know yet. */
  #peerEnding: number | undefined;
  #hasEnded = false;
  /** Whether the sink knows that the agent has finished. */
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

  /** Whether the stream can send nothing more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Written bytes that wait for credit or for room in the socket. */
  get unsent(): number {
    return this.#queue?.bytes ?? 0;
  }

  head(record: string): void {
    if (!this.#isOver) this.#writer.text(frames.head, this.id, record);
  }

  /**
   * Sends a piece of the body, or keeps it until there is credit and room. Keeps a long piece without a copy. Returns
   * false if the piece is kept. Calls of `drain` then report how much still waits.
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

  /** Ends the body. Returns false if the end waits for earlier bytes. The agent's end also ends the stream. */
  end(code: number): boolean {
    if (this.#isOver) return true;
    this.#ending = code;
    if (this.#queue) return false;
    this.#sendEnd();
    return true;
  }

  /** Ends the body now. Waiting bytes are not sent. */
  endNow(code: number): void {
    if (this.#isOver) return;
    this.#queue = undefined;
    this.#ending = code;
    this.#sendEnd();
  }

  /** Reports to the router that the agent only has written bytes left to send. */
  done(): void {
    if (!this.#isOver) this.#writer.bytes(frames.done, this.id, Buffer.alloc(0));
  }

  /** Ends the stream now. Waiting bytes are not sent, and the sink gets no further calls. */
  cancel(reason: Cancel): void {
    if (!this.#isOver) this.#writer.number(frames.cancel, this.id, cancelCode(reason), 1);
    this.#drop();
  }

  /** The sink gets nothing until `resume`. At most one window arrives meanwhile. */
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

  // The connection calls the following methods.

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

  /** Takes the header of a DATA. Its bytes follow in pieces. */
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

  /** Ends the stream after the peer's CANCEL, or after the end of the connection. */
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
