/**
 * Writes frames to a socket. All frames of one turn of the event loop leave in one write, so that the chunks of many
 * streams share one TLS record. On a busy connection, chunks of several turns leave together. Bodies that do not fit
 * wait in their streams, which take turns.
 */
import type { Socket } from "node:net";
import type { Clock, Timer } from "../time/clock.ts";
import { TransientMap } from "../transient-map.ts";
import { frames, headerBytes, type FrameType } from "./frame.ts";

/** A stream with bytes to write. */
interface WaitingStream {
  readonly id: number;
  /** Writes one slice. Returns whether the stream may write more. */
  writeSlice(): boolean;
}

/** The longest piece of a body that is written before other streams get their turn. */
export const sliceBytesMax = 16 << 10;
const slabBytes = 4 * (headerBytes + sliceBytesMax);
/** Bodies wait when the socket holds this many unsent bytes. */
export const unsentBytesMax = 256 << 10;
/**
 * If more bytes are unsent, the peer does not read, and the connection is closed. Frames that need no credit would
 * otherwise fill the memory.
 */
export const unreadBytesMax = 8 << 20;
/**
 * A write that waits behind another is copied out of its slab up to this size, because it would keep the whole slab in
 * memory.
 */
const copiedBytesMax = slabBytes >> 3;
/**
 * Slabs whose bytes have been sent, for the next write of any connection. New slabs would take 70 MB per second at
 * 12,800 chunks per second, and so much external memory makes V8 collect its whole heap.
 */
const spareSlabs: Buffer[] = [];
const spareSlabsMax = 32;
/**
 * On a busy connection, pieces of bodies wait until this time after the last write. The tokens of a stream are 10 to 50
 * ms apart.
 */
export const busyPauseMs = 2;

export class FrameWriter {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #isBusy: () => boolean;
  #slab: Buffer | undefined;
  #used = 0;
  #unsent = 0;
  #isScheduled = false;
  #next: Timer | undefined;
  #flushedAtMs = -Infinity;
  readonly #waiting = new TransientMap<number, WaitingStream>();
  #pong: Buffer | undefined;

  /** `isBusy` returns whether many streams are open. */
  constructor(socket: Socket, clock: Clock, isBusy: () => boolean) {
    this.#socket = socket;
    this.#clock = clock;
    this.#isBusy = isBusy;
  }

  /** Whether bodies must wait because the socket holds enough unsent bytes. */
  get isFull(): boolean {
    return this.#unsent + this.#used >= unsentBytesMax;
  }

  /** Writes a frame whose payload is a number of this many bytes. */
  number(type: FrameType, stream: number, value: number, bytes: 1 | 4): void {
    const at = this.#begin(type, stream, bytes);
    this.#slab!.writeUIntBE(value, at, bytes);
  }

  bytes(type: FrameType, stream: number, payload: Uint8Array): void {
    const at = this.#begin(type, stream, payload.length);
    this.#slab!.set(payload, at);
  }

  /**
   * Returns the length of the payload in bytes. `text` may have at most 21,000 characters, so that it fits into a slab.
   */
  text(type: FrameType, stream: number, text: string): number {
    this.#reserve(headerBytes + 3 * text.length);
    const length = this.#slab!.write(text, this.#used + headerBytes);
    this.#begin(type, stream, length);
    return length;
  }

  /**
   * Answers a PING. Replaces an answer that still waits, so that a peer which does not read cannot make many answers
   * pile up.
   */
  pong(payload: Buffer): void {
    this.#pong = Buffer.from(payload);
    this.#schedule();
  }

  /** Gives the stream turns until it has nothing more to write. */
  wait(stream: WaitingStream): void {
    this.#waiting.set(stream.id, stream);
    this.#schedule();
  }

  forget({ id }: WaitingStream): void {
    this.#waiting.delete(id);
  }

  /** Writes everything that waits, now. */
  flush(): void {
    this.#flushedAtMs = this.#clock.monotonicMs();
    if (this.#pong && !this.isFull) {
      const pong = this.#pong;
      this.#pong = undefined;
      this.bytes(frames.pong, 0, pong);
    }
    for (const stream of this.#waiting.values()) {
      if (this.isFull) break;
      this.forget(stream);
      if (stream.writeSlice()) this.#waiting.set(stream.id, stream);
    }
    this.#send();
  }

  /** Writes the header and reserves room for the payload. Returns the payload's offset. */
  #begin(type: FrameType, stream: number, length: number): number {
    this.#reserve(headerBytes + length);
    const slab = this.#slab!;
    const at = this.#used;
    slab.writeUInt32BE(length, at);
    slab[at + 4] = type;
    slab.writeUInt32BE(stream, at + 5);
    this.#used += headerBytes + length;
    if (type === frames.data && this.#isBusy()) this.#scheduleNext();
    else this.#schedule();
    return at + headerBytes;
  }

  #reserve(bytes: number): void {
    if (this.#used + bytes > slabBytes) this.#send();
    this.#slab ??= spareSlabs.pop() ?? Buffer.allocUnsafeSlow(slabBytes);
  }

  #send(): void {
    const slab = this.#slab;
    const bytes = this.#used;
    if (!slab || bytes === 0) return;
    const isCopied = this.#unsent > 0 && bytes <= copiedBytesMax;
    if (!isCopied) this.#slab = undefined;
    this.#used = 0;
    if (!this.#socket.writable) return;
    if (this.#unsent > unreadBytesMax) return void this.#socket.destroy(new Error("the peer does not read"));
    this.#unsent += bytes;
    const written = slab.subarray(0, bytes);
    this.#socket.write(isCopied ? Buffer.from(written) : written, () => {
      this.#unsent -= bytes;
      if (!isCopied && spareSlabs.length < spareSlabsMax) spareSlabs.push(slab);
      if (this.#waiting.size > 0 || this.#pong) this.flush();
    });
  }

  /** Writes at the end of this turn of the event loop. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.flush();
    });
  }

  /** Writes at the end of this turn, or once the pause after the last write is over. */
  #scheduleNext(): void {
    if (this.#isScheduled || this.#next) return;
    const waitMs = this.#flushedAtMs + busyPauseMs - this.#clock.monotonicMs();
    if (waitMs <= 0) return this.#schedule();
    this.#next = this.#clock.after(waitMs, () => {
      this.#next = undefined;
      this.flush();
    });
  }
}
