/**
 * Writes frames to a socket: all that is said in one turn of the event loop leaves as one write, which is one TLS record
 * for the chunks of many streams. On a busy connection, chunks of several turns leave together. Bodies that do not fit
 * wait at their streams, which take turns.
 */
import type { Socket } from "node:net";
import type { Clock, Timer } from "../time/clock.ts";
import { TransientMap } from "../transient-map.ts";
import { frames, headerBytes, type FrameType } from "./frame.ts";

/** A stream with bytes that wait to be written. */
interface WaitingStream {
  readonly id: number;
  /** Writes one slice. Returns whether it has more that may be written. */
  writeSlice(): boolean;
}

/** The longest piece of a body that is written before other streams get their turn. */
export const sliceBytesMax = 16 << 10;
const slabBytes = 4 * (headerBytes + sliceBytesMax);
/** Bytes that a socket may hold unsent; then bodies wait. */
export const unsentBytesMax = 256 << 10;
/** Beyond so many the peer does not read: what needs no credit would make a heap of them. */
export const unreadBytesMax = 8 << 20;
/** Up to here, a write that waits behind another one is copied out of its slab, which it would hold as a whole. */
const copiedBytesMax = slabBytes >> 3;
/**
 * Slabs whose bytes have been sent, for the next write of any connection. A new one for each write would be 70 MB a second at
 * 12,800 chunks, and V8 collects the whole heap for so much memory outside of it.
 */
const spareSlabs: Buffer[] = [];
const spareSlabsMax = 32;
/** So long after a write, pieces of bodies wait on a busy connection. The tokens of a stream are 10 to 50 ms apart. */
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

  /** `isBusy`: whether many streams are open. */
  constructor(socket: Socket, clock: Clock, isBusy: () => boolean) {
    this.#socket = socket;
    this.#clock = clock;
    this.#isBusy = isBusy;
  }

  /** Whether bodies must wait, since the socket holds enough. */
  get isFull(): boolean {
    return this.#unsent + this.#used >= unsentBytesMax;
  }

  /** A frame whose payload is a number of so many bytes. */
  number(type: FrameType, stream: number, value: number, bytes: 1 | 4): void {
    const at = this.#begin(type, stream, bytes);
    this.#slab!.writeUIntBE(value, at, bytes);
  }

  bytes(type: FrameType, stream: number, payload: Uint8Array): void {
    const at = this.#begin(type, stream, payload.length);
    this.#slab!.set(payload, at);
  }

  /** Returns the length of the payload in bytes. `text` has at most 21,000 characters, so that a slab holds it. */
  text(type: FrameType, stream: number, text: string): number {
    this.#reserve(headerBytes + 3 * text.length);
    const length = this.#slab!.write(text, this.#used + headerBytes);
    this.#begin(type, stream, length);
    return length;
  }

  /** Answers a PING. One that still waits is replaced, so that a peer which does not read makes no heap of them. */
  pong(payload: Buffer): void {
    this.#pong = Buffer.from(payload);
    this.#schedule();
  }

  /** The stream gets its turns as long as it has more to write. */
  wait(stream: WaitingStream): void {
    this.#waiting.set(stream.id, stream);
    this.#schedule();
  }

  forget({ id }: WaitingStream): void {
    this.#waiting.delete(id);
  }

  /** Writes what was said before, now. */
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

  /** Writes the header and makes room for the payload; returns where it begins. */
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
