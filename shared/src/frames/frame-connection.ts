/**
 * One end of a data connection: many streams over one socket, as README.md specifies. It owns the socket. The router
 * opens streams and the agent accepts them. Everything else is the same for both ends.
 */
import type { Socket } from "node:net";
import type { Clock } from "../time/clock.ts";
import { ReadTurns } from "../time/read-turns.ts";
import { TransientMap } from "../transient-map.ts";
import { BrokenRule, cancelCode, frames, streamsMax, type Rule, type WholeFrameType } from "./frame.ts";
import { FrameReader, type DataTaker, type FrameTarget } from "./frame-reader.ts";
import { FrameStream, type StreamSink } from "./frame-stream.ts";
import { FrameWriter } from "./frame-writer.ts";
import { watchPulse } from "./pulse.ts";

interface FrameConnectionOptions {
  readonly clock: Clock;
  /** Accepts a stream that the router has opened. Undefined at the router's end. */
  readonly take?: (stream: FrameStream, record: string) => StreamSink;
  /** Called at most once, when either end accepts no more streams. */
  readonly draining?: () => void;
  /** Called once, after all streams were notified. `reason` is for people, and a part of it may come from the peer. */
  readonly closed: (reason: string, broken: Rule | undefined) => void;
}

const streamIdMax = 0xffff_ffff;
/** The longest text of a GOAWAY. */
const textBytesMax = 1 << 10;
/** From this number of streams on, pieces of their bodies wait up to 2 ms, so that several leave in one write. */
export const busyStreams = 32;
const pingBytes = 8;
/**
 * After a read with more pieces, the connection is not read again in this turn of the event loop. Node reads up to 2 MB
 * of a socket per turn, which may be 200,000 short frames.
 */
const piecesPerTurn = 128;
const readTurns = new ReadTurns();

export class FrameConnection implements FrameTarget {
  readonly #socket: Socket;
  readonly #options: FrameConnectionOptions;
  readonly #writer: FrameWriter;
  readonly #streams = new TransientMap<number, FrameStream>();
  #lastId = 0;
  #isDraining = false;
  #hasSaidGoAway = false;
  #isClosed = false;
  #reason = "the peer closed the connection";
  #broken: Rule | undefined;
  #hasHeard = false;

  constructor(socket: Socket, options: FrameConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.setNoDelay(true);
    this.#writer = new FrameWriter(socket, options.clock, () => this.#streams.size >= busyStreams);
    const reader = new FrameReader(this);
    const pulse = watchPulse(options.clock, {
      hasHeard: () => this.#takeHeard(),
      isAsked: () => options.take === undefined && this.#streams.size === 0,
      ask: () => this.#writer.bytes(frames.ping, 0, Buffer.alloc(pingBytes)),
      lost: () => this.#end("the peer has fallen silent"),
    });
    socket.on("data", (bytes: Buffer) => this.#read(reader, bytes));
    socket.on("end", () => socket.destroy());
    socket.on("error", (error) => (this.#reason = error.message));
    socket.on("close", () => {
      pulse.cancel();
      this.#close();
    });
  }

  /** Whether this end may open new streams. */
  get isOpen(): boolean {
    return !this.#isDraining && !this.#isClosed && !this.#socket.destroyed;
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** Opens a stream, or returns undefined if none can be opened. `record` is its HEAD, a JSON array. */
  open(record: string, sink: StreamSink): FrameStream | undefined {
    if (this.#lastId === streamIdMax) this.goAway();
    if (!this.isOpen || this.#streams.size >= streamsMax) return undefined;
    const stream = this.#newStream(++this.#lastId, true);
    stream.sink = sink;
    stream.head(record);
    return stream;
  }

  /** Stops accepting streams. The connection closes once the open streams have ended. */
  goAway(): void {
    if (this.#hasSaidGoAway || this.#isClosed) return;
    this.#hasSaidGoAway = true;
    this.#writer.bytes(frames.goAway, 0, Buffer.alloc(0));
    this.#drain();
    this.#endIfUnused();
  }

  /** Closes immediately. The streams of both ends are lost. */
  destroy(): void {
    this.#end("closed here");
  }

  /** @internal For the reader. */
  dataBegins(id: number, length: number): DataTaker | undefined {
    const stream = this.#find(id);
    stream?.dataBegins(length);
    return stream;
  }

  /** @internal For the reader. */
  frame(type: WholeFrameType, id: number, payload: Buffer): void {
    switch (type) {
      case frames.head:
        return this.#headCame(id, payload.toString());
      case frames.end:
        return this.#find(id)?.endCame(payload[0]!);
      case frames.cancel:
        return this.#find(id)?.lose(payload[0]!);
      case frames.window:
        return this.#find(id)?.windowCame(payload.readUInt32BE());
      case frames.done:
        return this.#find(id)?.doneCame();
      case frames.ping:
        return this.#writer.pong(payload);
      case frames.pong:
        return; // any bytes are a sign of life
      case frames.goAway:
        return this.#goAwayCame(payload.toString());
    }
  }

  #headCame(id: number, record: string): void {
    const { take } = this.#options;
    if (!take) return this.#find(id)?.headCame(record);
    if (id <= this.#lastId) throw new BrokenRule("stream", `a HEAD for stream ${id} after ${this.#lastId}`);
    this.#lastId = id;
    if (this.#hasSaidGoAway || this.#streams.size >= streamsMax) return this.#refuse(id);
    const stream = this.#newStream(id, false);
    stream.sink = take(stream, record);
  }

  #refuse(id: number): void {
    if (this.#writer.isFull)
      throw new BrokenRule("stream", "more streams than the limit, and the refusals are not read");
    this.#writer.number(frames.cancel, id, cancelCode("refused"), 1);
  }

  /** Returns the open stream, or undefined if it is over. */
  #find(id: number): FrameStream | undefined {
    if (id > this.#lastId) throw new BrokenRule("stream", `a frame for stream ${id}, which was never opened`);
    return this.#streams.get(id);
  }

  #newStream(id: number, isRouter: boolean): FrameStream {
    const stream = new FrameStream(id, isRouter, this.#writer, this.#onOver);
    this.#streams.set(id, stream);
    return stream;
  }

  readonly #onOver = (id: number): void => {
    this.#streams.delete(id);
    this.#endIfUnused();
  };

  #goAwayCame(text: string): void {
    if (text !== "") this.#reason = `the peer closed the connection: ${text}`;
    this.#drain();
  }

  #drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#options.draining?.();
  }

  #endIfUnused(): void {
    if (!this.#hasSaidGoAway || this.#streams.size > 0 || this.#isClosed) return;
    this.#writer.flush();
    this.#socket.end();
  }

  #takeHeard(): boolean {
    const hasHeard = this.#hasHeard;
    this.#hasHeard = false;
    return hasHeard;
  }

  #read(reader: FrameReader, bytes: Buffer): void {
    if (this.#isClosed) return; // ignores a peer that broke a rule
    this.#hasHeard = true;
    try {
      if (reader.take(bytes) <= piecesPerTurn) return;
      this.#socket.pause();
      readTurns.later(() => this.#socket.resume());
    } catch (error) {
      if (!(error instanceof BrokenRule)) throw error;
      this.#broken = error.rule;
      this.#reason = error.message;
      this.#writer.bytes(frames.goAway, 0, Buffer.from(error.message).subarray(0, textBytesMax));
      this.#writer.flush();
      this.#socket.destroySoon();
      this.#close();
    }
  }

  #end(reason: string): void {
    if (!this.#isClosed) this.#reason = reason;
    this.#socket.destroy();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const stream of this.#streams.values()) stream.lose("lost");
    this.#options.closed(this.#reason, this.#broken);
  }
}
