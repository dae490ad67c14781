/** One end of a stream. Tests await its events, and write the other direction by hand. */
import { EventEmitter, once } from "node:events";
import type { FrameConnection } from "../frames/frame-connection.ts";
import { ends } from "../frames/frame.ts";
import type { FrameStream, Gone, StreamSink } from "../frames/frame-stream.ts";
import { readRecord, type AnswerKind, type AnswerRecord } from "../node-protocol.ts";

interface Events {
  /** Fields of the answer's record. */
  head: [readonly unknown[]];
  data: [Buffer];
  /** The code in the peer's END. */
  end: [number];
  drain: [];
  /** The stream has ended: by the agent's END, by a CANCEL of either end, or with the connection. */
  over: [];
}

export class SimStream extends EventEmitter<Events> implements StreamSink {
  frames!: FrameStream;
  /** Why the stream ended without an END. */
  lostBy: Gone | undefined;
  /** The code in the peer's END, once it has arrived. */
  ending: number | undefined;
  isOver = false;
  /** Whether the agent has finished its work. Only a router's end gets this. */
  isDone = false;
  #isRouter = true;

  /** Opens a stream as a router does. It reads from the start. */
  static open(connection: FrameConnection, record: readonly unknown[]): SimStream {
    const stream = new SimStream();
    const frames = connection.open(JSON.stringify(record), stream);
    if (!frames) throw new Error("the connection takes no more streams");
    stream.frames = frames;
    frames.resume();
    return stream;
  }

  /** Takes a stream as an agent does. Bytes wait until it is resumed. */
  static taken(frames: FrameStream): SimStream {
    const stream = new SimStream();
    stream.frames = frames;
    stream.#isRouter = false;
    return stream;
  }

  begin(kind: AnswerKind = "events", status = 200): void {
    this.frames.head(JSON.stringify([status, kind, 0, ""] satisfies AnswerRecord));
  }

  /** Writes the whole answer at once. */
  answer(text: string | Buffer, kind: AnswerKind = "json"): void {
    this.begin(kind);
    this.finish(text);
  }

  /** Writes the rest of an answer. */
  finish(text: string | Buffer = "", code: number = ends.complete): void {
    this.frames.write(text);
    this.frames.end(code);
    this.#over();
  }

  /** Reads to the end of what the peer sends, however it ends. */
  async read(): Promise<Buffer> {
    const pieces: Buffer[] = [];
    this.on("data", (piece) => pieces.push(Buffer.from(piece)));
    if (!this.isOver) {
      this.frames.resume();
      if (this.ending === undefined) await Promise.race([once(this, "end"), once(this, "over")]);
    }
    return Buffer.concat(pieces);
  }

  cancel(): void {
    this.frames.cancel("unwanted");
    this.#over();
  }

  head(record: string): void {
    this.emit("head", readRecord(record));
  }

  data(bytes: Buffer): void {
    this.emit("data", bytes);
  }

  end(code: number): void {
    this.ending = code;
    this.emit("end", code);
    if (this.#isRouter) this.#over();
  }

  done(): void {
    this.isDone = true;
  }

  gone(why: Gone): void {
    this.lostBy = why;
    this.#over();
  }

  drain(left: number): void {
    if (left === 0) this.emit("drain");
  }

  #over(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.emit("over");
  }
}
