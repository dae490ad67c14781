/**
 * The body of a node's answer as an ordinary stream. Node's own HTTP/2 stream says that it is closed while data of it
 * still waits to be read, so that iterators and pipelines that begin a moment late would drop a short answer; and it
 * resets with code 0, as if all had been well, when it is destroyed.
 */
import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from "node:http2";
import { Readable } from "node:stream";
import { endComplete, endError, endTrailer } from "@weiche/shared/node-protocol.ts";
import type { AnswerEnding } from "./upstream.ts";

/** On top of what the HTTP/2 window lets in. */
const bufferBytes = 16 << 10;

/** Ends when the answer does, however it does; `ending` says how. Destroying it cancels the request at the node. */
export class AnswerBody extends Readable {
  ending: AnswerEnding = "broken";
  readonly #stream: ClientHttp2Stream;
  /** Until the answer is whole, where its head says how long it is. */
  #bytesMissing: number;

  constructor(stream: ClientHttp2Stream, head: IncomingHttpHeaders) {
    super({ highWaterMark: bufferBytes });
    this.#stream = stream;
    this.#bytesMissing = head[endTrailer] === endComplete ? Number(head["content-length"]) : NaN;
    stream.on("data", (chunk: Buffer) => {
      this.#bytesMissing -= chunk.length;
      if (this.#bytesMissing === 0) this.ending = "complete";
      if (!this.push(chunk)) stream.pause();
    });
    stream.once("trailers", ({ [endTrailer]: end }) => {
      if (end === endComplete) this.ending = "complete";
      if (end === endError) this.ending = "error";
    });
    stream.once("end", () => this.push(null));
    stream.once("close", () => this.push(null));
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    if (!this.#stream.closed) this.#stream.close(constants.NGHTTP2_CANCEL);
    callback(error);
  }
}
